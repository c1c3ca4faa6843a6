-- Raises the anchors of audit lanes. KEYS: anchors. ARGV: field and sequence in turn; a field is lane:until.
for i = 1, #ARGV, 2 do
  local seen = tonumber(redis.call('HGET', KEYS[1], ARGV[i])) or 0
  if tonumber(ARGV[i + 1]) > seen then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return 1
