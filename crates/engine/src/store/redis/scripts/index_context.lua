-- Puts a conversation into an index. KEYS: index. ARGV: last use, conversation.
index_context(KEYS[1], ARGV[1], ARGV[2])
return 1
