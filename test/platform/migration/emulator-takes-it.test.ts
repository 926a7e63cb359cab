import { type Migration, migrateCall } from '../../../src/platform/migration/migrate-call';
import { onceForAll } from '../../support/after-test';
import { startEmulator, type TestEmulator } from '../../support/start-emulator';

/** An emulator, and what there is for calls that need it. */
async function start() {
  const emulator = await startEmulator();
  const { admin, siteId } = emulator;
  const create = async (collection: string, body: object): Promise<string> => {
    const { status, body: answer } = await admin.post(`/v2/sites/${siteId}/${collection}/`).send(body);
    expect({ status, answer }).toMatchObject({ status: 201 });
    return answer.id;
  };
  const media = await create('media', {
    metadata: { title: 'a', tags: ['old'] },
    upload: { method: 'fetch', download_url: 'https://example.com/a.mp4' },
  });
  await create('thumbnails', { relationships: { media: [{ id: media }] }, upload: { method: 'direct' } });
  const made = {
    media,
    playlist: await create('playlists/manual_playlist', { metadata: { title: 'p' } }),
    player: await create('players', { metadata: { name: 'p' } }),
    track: await create(`media/${media}/text_tracks`, {
      metadata: { label: 'a' },
      upload: { method: 'direct' },
    }),
    rendition: await create(`media/${media}/media_renditions`, {
      relationships: { media_rendition_template: { id: 'template1' } },
    }),
  };
  return { emulator, made };
}

/** For calls that take nothing away. */
const shared = onceForAll(start);

/** Sends the calls of v2 one after the other, with the answers of those before, as a user would. */
async function send({ admin }: TestEmulator, { calls }: Migration): Promise<number[]> {
  const statuses: number[] = [];
  let before: Record<string, unknown> = {};
  for (const { method, path, query, body } of calls) {
    const id = firstId(before);
    const filled = path
      .replace('{thumbnail_id}', id)
      .replace('{playlist_type}', String(before.playlist_type));
    const request = admin[method.toLowerCase() as 'get'](filled).query(query);
    const { status, body: answer } = await request.send(body === undefined ? undefined : completed(body));
    if (status >= 300)
      throw new Error(`${method} ${filled} ${JSON.stringify(body)}: ${status} ${JSON.stringify(answer)}`);
    statuses.push(status);
    before = answer;
  }
  return statuses;
}

function firstId(answer: Record<string, unknown>): string {
  const { thumbnails } = answer as { thumbnails?: { id: string }[] };
  return String(answer.id ?? thumbnails?.[0]?.id ?? '{none}');
}

/** Completes the parts that are left to the user: there are no values to keep. */
function completed(body: object): object {
  return JSON.parse(
    JSON.stringify(body, (name, value) => {
      if (Array.isArray(value))
        return value.filter((each) => typeof each !== 'string' || !each.startsWith('{'));
      return name.startsWith('{') ? undefined : value;
    }),
  );
}

const CALLS = `
/v1/accounts/tags/delete?name=old
/v1/accounts/tags/update?name=old&new_name=new
/v1/accounts/usage/show?start_date=1890000000&end_date=1890100000
/v1/channels/create?type=manual&title=a&description=b&author=c&link=https://a.example&custom.x=1
/v1/channels/create?title=a&tags=b,c&tags_mode=any&sort_order=date-desc&videos_max=5
/v1/channels/delete?channel_key=PLAYLIST
/v1/channels/delete?channel_key=PLAYLIST&type=manual
/v1/channels/list?result_limit=5&order_by=title:desc&search=a&type=manual
/v1/channels/update?channel_key=PLAYLIST&title=b&custom.a=1&custom.-b=
/v1/channels/videos/create?channel_key=PLAYLIST&video_key=MEDIA
/v1/channels/videos/delete?channel_key=PLAYLIST&position=1
/v1/players/create?name=a&release_channel=beta&responsive=true&aspectratio=16:9&playback_rate_controls=1,2&width=640&mute=true&custom.a=1
/v1/players/delete?player_key=PLAYER
/v1/players/list?search=a&order_by=name:asc
/v1/players/update?player_key=PLAYER&name=b&repeat=false&custom.a=1
/v1/videos/create?title=a&tags=b,c&description=d&author=e&date=1890000000&expires_date=&link=https://a.example&category=Music&language=en&custom.a=1&md5=x&size=1
/v1/videos/create?title=a&sourcetype=url&sourceurl=https://a.example/b.m3u8&sourceformat=m3u8&duration=5
/v1/videos/create?upload_method=multipart
/v1/videos/create?download_url=https://a.example/b.mp4&trim_in_point=00:00:01.000&trim_out_point=00:00:02.000
/v1/videos/delete?video_key=MEDIA
/v1/videos/list?search=a"b*&tags=a,b c&tags_mode=any&statuses_filter=ready,failed&mediatypes_filter=video&start_date=1&end_date=1890000000&order_by=date:desc,title,duration:asc,key&result_limit=7&result_offset=14
/v1/videos/list?search:custom.a=x&search:title,link=y&tags=a
/v1/videos/list?search:*=x&order_by=status:asc,mediatype:desc,author,expires_date:desc,updated:asc
/v1/videos/update?video_key=MEDIA&title=b&custom.a=1&custom.-b=&expires_date=1890000000
/v1/videos/update?video_key=MEDIA&title=b&update_file=true
/v1/videos/conversions/create?video_key=MEDIA&template_key=template2
/v1/videos/conversions/delete?video_key=MEDIA&conversion_key=RENDITION
/v1/videos/conversions/list?video_key=MEDIA&result_limit=5
/v1/videos/conversions/show?video_key=MEDIA&conversion_key=RENDITION
/v1/videos/thumbnails/show?video_key=MEDIA
/v1/videos/thumbnails/update?video_key=MEDIA&position=2.5
/v1/videos/thumbnails/update?video_key=MEDIA
/v1/videos/tracks/create?video_key=MEDIA&kind=captions&label=English&language=en
/v1/videos/tracks/delete?video_key=MEDIA&track_key=TRACK
/v1/videos/tracks/list?video_key=MEDIA&kinds_filter=captions,chapters&statuses_filter=ready&search=a&order_by=label:desc
/v1/videos/tracks/show?video_key=MEDIA&track_key=TRACK
/v1/videos/tracks/update?video_key=MEDIA&track_key=TRACK&label=b&language=de
`;

test.each(CALLS.trim().split('\n'))('the platform takes what becomes of %s', async (call) => {
  const { emulator, made } = await (/delete|tags/.test(call) ? start() : shared());
  const [route = '', query = ''] = call.split('?');
  const filled = Object.entries(made).reduce(
    (text, [name, id]) => text.replace(name.toUpperCase(), id),
    query,
  );
  const parameters = Object.fromEntries(new URLSearchParams(filled));
  const migration = migrateCall({ route, parameters }, emulator.siteId);
  expect(await send(emulator, migration)).toHaveLength(migration.calls.length);
});
