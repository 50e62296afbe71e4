/* settings.h: the numbers that configure the client (config.c), a line each, as the plan of a
 * search checks them, too (harness/gen/estimate-cost): name, least, most, default (NAN: it is not
 * sent), whether it is whole, and where it is in struct llm_config. */
SETTING("LLM_TEMPERATURE", 0, 100, NAN, false, temperature)
SETTING("LLM_SEED", -1e14, 1e14, NAN, true, seed)
SETTING("LLM_MAX_TOKENS", 1, 1e8, 32768, true, max_tokens)
SETTING("LLM_SECONDS", 0.001, 1e6, 3600, false, call_seconds)
SETTING("LLM_IDLE_SECONDS", 1, 1e6, 600, true, idle_seconds)
SETTING("LLM_BACKOFF_MS", 0, 1e6, 500, false, backoff_ms)
SETTING("LLM_TRIES", 1, 100, 8, true, tries)
