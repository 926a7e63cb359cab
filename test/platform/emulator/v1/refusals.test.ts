import { inspect } from 'node:util';
import { onceForAll } from '../../../support/after-test';
import { createV1, okV1, refusedV1 } from '../../../support/call-v1';
import { startEmulator } from '../../../support/start-emulator';

/** Calls that are refused, with the status, the code and the message. `x*201` stands for x 201 times. */
const REFUSED = String.raw`
accounts/tags/delete → 400 ParameterMissing name is missing.
accounts/tags/delete?name= → 400 ParameterEmpty name is empty.
accounts/tags/delete?name=none → 404 NotFound name: there is nothing with the key none.
accounts/tags/update?name=a → 400 ParameterMissing new_name is missing.
accounts/tags/update?name=none&new_name=b → 404 NotFound name: there is nothing with the key none.
accounts/tags/update?name=a&new_name=x*201 → 400 ParameterInvalid new_name is longer than 200 characters.
accounts/usage/show?account_key=othrsite → 404 NotFound account_key: there is nothing with the key othrsite.
accounts/usage/show?start_date=today → 400 ParameterInvalid start_date must be a UNIX time in seconds, as 1237387851.
accounts/usage/show?start_date=1893542400&end_date=1893456000 → 400 ParameterInvalid end_date: must not be before start_date
channels/create?type=radio → 400 ParameterInvalid type must be one of manual, dynamic, trending, article_matching, search, recommendations.
channels/create?type=manual&sort_order=date-asc → 400 ParameterInvalid sort_order is not a parameter of this call.
channels/create?type=manual&videos_max=5 → 400 ParameterInvalid videos_max is not a parameter of this call.
channels/create?sort_order=size-asc → 400 ParameterInvalid sort_order must be one of date, title, duration, views, with -asc or -desc.
channels/create?videos_max=all → 400 ParameterInvalid videos_max must be a number, as 12.5.
channels/create?videos_max=0 → 400 ParameterInvalid videos_max must be at least 1.
channels/create?tags=a&tags_mode=none → 400 ParameterInvalid tags_mode must be any or all.
channels/update?channel_key=DYNAMIC&type=manual&title=E → 400 ParameterInvalid type: a channel keeps its type. Leave it out, or create another channel.
channels/videos/create?channel_key=DYNAMIC&video_key=VIDEO → 405 NotSupported channel_key: only a manual channel has videos of its own.
channels/videos/create?channel_key=MANUAL → 400 ParameterMissing video_key is missing.
channels/videos/create?channel_key=MANUAL&video_key=none0000 → 404 NotFound video_key: there is nothing with the key none0000.
channels/videos/create?channel_key=MANUAL&video_key=OTHER&position=2 → 400 ParameterInvalid position must be at most 1.
channels/videos/delete?channel_key=MANUAL → 400 ParameterMissing position is missing.
channels/videos/delete?channel_key=MANUAL&position=1 → 400 ParameterInvalid position must be at most 0.
channels/videos/delete?channel_key=MANUAL&position=-1 → 400 ParameterInvalid position must be a whole number, 0 or more.
channels/videos/delete?channel_key=MANUAL&video_key=VIDEO&position=0 → 400 ParameterInvalid video_key and position cannot be set together.
channels/videos/show?channel_key=MANUAL&video_key=OTHER → 404 NotFound
channels/videos/update?channel_key=MANUAL&position_from=0 → 400 ParameterMissing position_to is missing.
channels/videos/list?channel_key=MANUAL&result_limit=1001 → 400 ParameterInvalid result_limit must be at most 1000.
players/create → 400 ParameterMissing name is missing.
players/create?name= → 400 ParameterEmpty name is empty.
players/create?name=x*201 → 400 ParameterInvalid name is longer than 200 characters.
players/create?name=P&responsive=maybe → 400 ParameterInvalid responsive must be true or false.
players/show → 400 ParameterMissing player_key is missing.
players/show?player_key=none0000 → 404 NotFound This site has no player with this id.
players/update?player_key=none0000 → 404 NotFound This site has no player with this id.
videos/show → 400 ParameterMissing video_key is missing.
videos/show?video_key=+ → 400 ParameterEmpty video_key is empty.
videos/delete?video_key=, → 400 ParameterEmpty video_key is empty.
videos/delete?video_key=a,*1001 → 400 ParameterInvalid video_key has more than 1000 keys.
videos/delete?video_key=VIDEO,none0000 → 404 NotFound This site has no media with this id.
videos/create?titel=A → 405 NotSupported titel is not a parameter of /v1/videos/create. Did you mean title?
videos/create?upload_method=fetch → 400 ParameterMissing download_url is missing.
videos/create?sourcetype=url → 400 ParameterMissing sourceurl is missing.
videos/create?sourcetype=tape → 400 ParameterInvalid sourcetype must be one of file, url.
videos/create?title=x*1001 → 400 ParameterInvalid title is longer than 1000 characters.
videos/create?custom.a=x*4001 → 400 ParameterInvalid custom.a is longer than 4000 characters.
videos/create?tags=x*201 → 400 ParameterInvalid tags is longer than 200 characters.
videos/create?date=today → 400 ParameterInvalid date must be a UNIX time in seconds, as 1237387851.
videos/create?trim_in_point=5 → 400 ParameterInvalid trim_in_point must be a time as HH:MM:SS.mmm.
videos/create?md5=x → 400 ParameterInvalid md5 must be the MD5 of the file, as 32 hexadecimal digits.
videos/create?size=-1 → 400 ParameterInvalid size must be a whole number, 0 or more.
videos/conversions/list → 400 ParameterMissing
videos/conversions/list?video_key=none0000 → 404 NotFound
videos/conversions/create?video_key=VIDEO → 400 ParameterMissing
videos/conversions/create?video_key=none0000&template_key=1 → 404 NotFound
videos/conversions/show?conversion_key=none0000 → 404 NotFound
videos/conversions/delete → 400 ParameterMissing
videos/tracks/create?video_key=none0000&kind=captions → 404 NotFound
videos/tracks/create?video_key=VIDEO&kind=poem → 400 ParameterInvalid
videos/tracks/show?track_key=none0000 → 404 NotFound
videos/tracks/update → 400 ParameterMissing
videos/tracks/delete?track_key=none0000 → 404 NotFound
videos/thumbnails/show?video_key=none0000 → 404 NotFound
videos/thumbnails/update → 400 ParameterMissing
videos/thumbnails/update?video_key=VIDEO&position=-1 → 400 ParameterInvalid
videos/thumbnails/update?video_key=VIDEO&position=1&thumbnail_index=1 → 400 ParameterInvalid
videos/list?result_limit=1001 → 400 ParameterInvalid result_limit must be at most 1000.
videos/list?result_limit=-1 → 400 ParameterInvalid result_limit must be a whole number, 0 or more.
videos/list?result_limit=all → 400 ParameterInvalid result_limit must be a whole number, 0 or more.
videos/list?result_limit={limit} → 400 ParameterInvalid result_limit is a placeholder. Send a value.
videos/list?result_offset=1.5 → 400 ParameterInvalid result_offset must be a whole number, 0 or more.
videos/list?result_offset=9*20 → 400 ParameterInvalid result_offset must be a whole number, 0 or more.
videos/list?order_by=date:up → 400 ParameterInvalid order_by must be as date:asc or date:desc.
videos/list?order_by=shoesize:asc → 400 ParameterInvalid order_by names a field that this list does not have.
videos/list?order_by={field} → 400 ParameterInvalid order_by is a placeholder. Send a value.
videos/list?order_by=title:asc,*1000 → 400 ParameterInvalid order_by is longer than 200 characters.
videos/list?tags=a&tags_mode=some → 400 ParameterInvalid tags_mode must be all or any.
videos/list?search=x*201 → 400 ParameterInvalid search is longer than 200 characters.
videos/list?search:*="\*5000 → 400 ParameterInvalid search:* is longer than 200 characters.
videos/list?search:shoesize=9 → 400 ParameterInvalid search:shoesize names a field that this list does not have.
videos/list?search:shoesize,custom.*=9 → 400 ParameterInvalid search:shoesize,custom.* names a field that this list does not have.
`;

const shared = onceForAll(async () => {
  const emulator = await startEmulator();
  const VIDEO = await createV1(emulator, 'video', { tags: 'a' });
  const OTHER = await createV1(emulator, 'video');
  const MANUAL = await createV1(emulator, 'channel', { type: 'manual' });
  const DYNAMIC = await createV1(emulator, 'channel');
  await okV1(emulator, 'channels/videos/create', { channel_key: MANUAL, video_key: VIDEO });
  return { emulator, keys: { VIDEO, OTHER, MANUAL, DYNAMIC } };
});

test.each(REFUSED.trim().split('\n'))('refused, and nothing is changed: %s', async (row) => {
  const { emulator, keys } = await shared();
  const { rateWindows: _windows, signatures: _signatures, ...stores } = emulator.context.state;
  const everything = () => inspect(stores, { depth: 7 });
  const [asked = '', expected = ''] = row.split(' → ');
  const [call = '', query = ''] = asked
    .replaceAll(/VIDEO|OTHER|MANUAL|DYNAMIC/g, (name) => keys[name as keyof typeof keys])
    .split(/\?(.*)/);
  const pairs = [...new URLSearchParams(query)].map(([name, value]) => {
    const [, text = value, times = '1'] = /^(.+)\*(\d+)$/.exec(value) ?? [];
    return [name, text.repeat(Number(times))];
  });
  const before = everything();
  const refusal = await refusedV1(emulator, call, Object.fromEntries(pairs));
  const [, status, code, message = refusal[2]] = /^(\d+) (\w+)(?: (.*))?$/.exec(expected) ?? [];
  expect(refusal).toEqual([Number(status), code, message]);
  expect(everything()).toBe(before);
});
