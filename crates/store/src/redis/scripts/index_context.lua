-- Puts a conversation into an index. KEYS: index. ARGV: last use, conversation, its expiry or ''.
index_context(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
return 1
