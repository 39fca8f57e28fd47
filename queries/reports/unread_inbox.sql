-- Unread messages between agents
-- Unread messages in team inboxes, newest first.
-- Group: open
select
    i.timestamp,
    i.sender,
    i.recipient,
    coalesce(i.summary, substr(i.text, 1, 200)) as message,
    i.kind,
    t.name as team,
    i.id
from inbox_items i
left join teams t on t.id = i.team_id
where i.channel = 'inbox'
  and i.is_read = 0
  and i.gone_at is null
order by i.timestamp desc, i.id desc
