# prompt.jq: the question of the next attempt.  The input, as harness/gen/prompt_data.c and gen_main.c gather it:
#
#   task                         its texts, cost and so on (harness/gen/prompt_task.h)
#   gpu, arch, machine, peaks    the GPU; machine and peaks null if unknown
#   vendor                       the recorded result of the cell, or null
#   headers, offers              of the project, by name: their text, and what they declare
#   parts, tolerance             the files beside this one, by name; harness/measure/tolerance.h
#   mode, round, index, attempt  whose turn it is; api of the model
#   attempts, current            earlier ones of the mode (harness/gen/attempt.h), the cell's kernel or
#                                null, each with code, log, tape and profile as texts or null
#   draws                        random numbers from 0 to 1, the same for the same attempt
#   most_bytes                   of both messages
#
# A template may use the names of `texts`: null if unknown.
include "text";
include "facts";
include "feedback";
include "search";

# Tell each sample its number, and ask all but the first for something unusual: samples of one request must
# differ, and some models have no temperature.  Repairs and implemented ideas differ by their starting
# point; a sample that is one of one is an independent draw.
def sample: if .of <= 1 or (.ask | IN("repair", "implement")) then "(Request \(.attempt).)"
    else "(Request \(.attempt): proposal \([.number, 1] | max) of \(.of), which are written independently. "
      + if .number > 1
        then "Make it differ in kind from what the others are likely to be: not the first approach that comes to mind "
             + "with other sizes, but another good one.)"
        else "Take the approach that you judge best.)" end end;

def texts: gpu_facts + task_facts + tolerance
    + {interfaces: interfaces, shown: shown, failed: failed, ledger: history, idea: idea_to_do, sample: sample,
       ideas_wanted: (.ideas_wanted | if . then tostring else null end)};

# The template NAME.txt filled in; an ask must use what its turn is about.
def template($name; $values; $must): "\($name).txt" as $file
    | .parts[$file] | expand("harness/gen/prompts/\($file)"; $values; $must);

# The messages with at most .most bytes of each kernel.  The system message is the same for every task on a
# GPU: rules, a worked example, the GPU, what the project's headers offer.  The user's begins with what
# other turns share, the task and the headers that its kernels include: so many bytes are `stable`, for caches.
def messages: . as $in | texts as $values
    | ("\(template("task"; $values; []))\n\(headers_shown // "" | if . == "" then . else . + "\n" end)") as $stable
    | [{role: "system", text: ([template("system", "example", "gpu"; $values; [])] | join("\n")), stable: 0},
       {role: "user", stable: ($stable | utf8bytelength),
        text: ($stable + template("ask_\($in.ask)"; $values;
                                  ["shown", "failed", "ledger", "idea", "ideas_wanted", "sample"]))}];

# The same with as much of each kernel as there is room for.
def fitted($most): (.most = $most | messages) as $messages
    | if ([$messages[].text | utf8bytelength] | add) <= .most_bytes then $messages
      elif $most > 1024 then fitted($most / 2)
      else error({code: 3, text: ("\(.task.name): the prompt of \(.attempt) is longer than "
                                  + "\(.most_bytes / 1024) KB even with kernels cut: show fewer")}) end;

# The messages, and what .asked.json and .gen.json say of the question.
def question: . + turn
    | {messages: fitted(65536),
       asked: ({schema: 1, task: .task.name, gpu, attempt, mode, round, index, api, ask, shown: [.shown[].attempt]}
               + (if .idea then {idea_text: .idea} else {} end) + {idea: .idea_index})};
