-- Adds a key row, if there is none and the root is still the row's. KEYS: shard, index, row.
-- ARGV: root, tag, score, when the row goes or '', then fields and values.
local row = redis.call('HGETALL', KEYS[3])
if #row > 0 then return row end
local root = redis.call('HGET', KEYS[1], 'root')
if root and root ~= ARGV[1] then return root end
local fields = {}
for i = 5, #ARGV do fields[#fields + 1] = ARGV[i] end
redis.call('HSET', KEYS[3], unpack(fields))
if ARGV[4] ~= '' then redis.call('PEXPIREAT', KEYS[3], ARGV[4]) end
key_index(KEYS[2], ARGV[3], ARGV[1] .. ARGV[2])
return 1
