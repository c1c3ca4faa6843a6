-- Destroys key rows of a shard; says how many there were. KEYS: index, rows. ARGV: tags.
local gone = 0
for i, tag in ipairs(ARGV) do
  local root = redis.call('HGET', KEYS[1 + i], 'r')
  if root then redis.call('ZREM', KEYS[1], root .. tag) end
  gone = gone + redis.call('DEL', KEYS[1 + i])
end
key_index_expiry(KEYS[1])
return gone
