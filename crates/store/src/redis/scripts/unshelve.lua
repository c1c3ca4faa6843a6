-- Whoever ARGV[1] names waits no longer; if nobody else does, or it names nobody, the index goes. Gives the entries that go with
-- it. KEYS: index.
if ARGV[1] ~= '' then redis.call('HDEL', KEYS[1], ARGV[1]) end
local gone = {}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 2) == 'd:' then
    if ARGV[1] ~= '' then return {} end
  else
    gone[#gone + 1] = field
  end
end
redis.call('DEL', KEYS[1])
return gone
