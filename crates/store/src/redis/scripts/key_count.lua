-- Rows of a shard, and those of another root than ARGV[1]. KEYS: index.
local all, others = 0, 0
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  all = all + 1
  if string.sub(member, 1, 8) ~= ARGV[1] then others = others + 1 end
end
return { all, others }
