-- Removes a session; says how many log records went. KEYS: session.
local meta = 0
for _, field in ipairs({ 'v', 'k', 'w', 'x', 'o', 'c', 's' }) do
  meta = meta + redis.call('HEXISTS', KEYS[1], field)
end
local records = redis.call('HLEN', KEYS[1]) - meta
redis.call('DEL', KEYS[1])
return records
