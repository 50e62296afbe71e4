# facts.jq: stands in for harness/gen/prompts/facts.jq where searches are tested: to compile the real texts takes
# most of an attempt's time, and what they say is for tests/unit/gen.  A line with a name that is null is left out.
def none($names): reduce ($names | splits(" ")) as $name ({}; .[$name] = null);
def gpu_facts: none("capability chips sms l2 l2_read clock shared_rate memory read copy products registers_per_sm "
    + "registers_per_thread threads_per_sm warps_per_sm blocks_per_sm threads_per_block shared_per_sm shared_per_block has lacks")
    + {device: .gpu, arch};
def tolerance: {rms_limit: "4", part_limit: "5", element_limit: "30", bias_limit: "3"};
def task_facts: none("tensors graph meanings notes bytes floor_bytes flops floor_flops vendor")
    + (.task | {title, name, outputs: .written, header});
def interfaces: [.offers | keys[]] | join(" ");
def header_names: .headers as $headers | [.source | match("#include \"([A-Za-z0-9_.]+)\""; "g").captures[0].string]
    | map(select($headers[.])) | join(" ");
def headers_shown: null;
