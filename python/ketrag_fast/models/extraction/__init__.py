"""From chunks to entities and relations: prompts, replies, recordings, rules."""
