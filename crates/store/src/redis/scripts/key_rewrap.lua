-- Replaces the sealed parts of a key row, if they are still what the caller saw. KEYS: index, row.
-- ARGV: tag, sealed key as seen, root, sealed key, sealed scope.
local row = redis.call('HMGET', KEYS[2], 'd', 'r')
if row[1] == ARGV[4] then return 1 end
if row[1] ~= ARGV[2] then return 0 end
local score = redis.call('ZSCORE', KEYS[1], row[2] .. ARGV[1]) or 'inf'
redis.call('HSET', KEYS[2], 'r', ARGV[3], 'd', ARGV[4], 'n', ARGV[5])
redis.call('ZREM', KEYS[1], row[2] .. ARGV[1])
key_index(KEYS[1], score, ARGV[3] .. ARGV[1])
return 1
