-- KEYS: the buffer, who follows it. ARGV: who asks, how long they follow in ms, the first entry wanted.
-- The buffer's first entry, and those that are wanted; nothing if there is none.
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
local first = redis.call('LINDEX', KEYS[1], 0)
if not first then return {} end
local entries = redis.call('LRANGE', KEYS[1], ARGV[3], -1)
table.insert(entries, 1, first)
return entries
