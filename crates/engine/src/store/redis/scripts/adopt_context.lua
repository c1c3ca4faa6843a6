-- Puts a context in place of whatever is there. KEYS: context. ARGV: fields and values in turn.
redis.call('DEL', KEYS[1])
for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
