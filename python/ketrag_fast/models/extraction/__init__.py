"""Extract entities and relations from chunks: prompts, replies, recordings, rules."""
