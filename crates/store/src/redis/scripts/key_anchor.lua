-- Raises or sets the anchors of key rows of a shard. KEYS: index, rows. ARGV: 'raise' or 'set', then for each row tag,
-- key id, version, and when raising the expiry or '' and when the row goes or ''.
local step = ARGV[1] == 'raise' and 5 or 3
for i = 2, #KEYS do
  local at = 2 + (i - 2) * step
  local row = redis.call('HMGET', KEYS[i], 'k', 'a', 'r')
  if row[1] == ARGV[at + 1] then
    local newer = tonumber(ARGV[at + 2]) >= (tonumber(row[2]) or 0)
    if newer or step == 3 then redis.call('HSET', KEYS[i], 'a', ARGV[at + 2]) end
    -- The newest write says how long the key is needed, whichever process comes first.
    if newer and step == 5 then
      redis.call('HSET', KEYS[i], 'x', ARGV[at + 3])
      if ARGV[at + 3] ~= '' then
        redis.call('PEXPIREAT', KEYS[i], ARGV[at + 4])
        key_index(KEYS[1], ARGV[at + 3], row[3] .. ARGV[at])
      else
        redis.call('PERSIST', KEYS[i])
        key_index(KEYS[1], 'inf', row[3] .. ARGV[at])
      end
    end
  end
end
return 1
