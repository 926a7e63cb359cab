import * as z from 'zod';
import { errorsAnswer } from '../../../http/faults';
import { type Answer, jsonSchema, parameter, queryParameters, type Schema } from '../../../http/openapi';
import { DASH, Formatted, HLS, Item } from '../delivery/documents';
import { PlaylistQuery } from '../delivery/playlists';
import { field } from '../json-body';
import { answer, type Group, json, type Row, rowsOf, text } from './operation';

/** The body of every refusal: clients read `message`. */
const MESSAGE = z.object({
  message: field(text, 'The problem.'),
  code: field(z.literal('not_available').optional(), 'The packager refuses the stream.'),
});

const ChannelDocument = z.object({
  status: field(z.enum(['active', 'idle']), 'Whether there is an event that viewers may watch.'),
  current_event: field(text.optional(), 'The id of that event.'),
});

/** Custom parameters are fields of an item, and of the document of a playlist. */
const MediaDocument = z.looseObject({
  title: field(text, 'The title.'),
  description: field(text, 'The description.'),
  kind: field(text, 'The kind of document.'),
  feed_instance_id: field(text, 'The id of this answer.'),
  playlist: field(z.array(z.looseObject(Item.shape)), 'Its items.'),
});
const PlaylistDocument = MediaDocument.extend({
  feedid: field(text, 'The id of the playlist.'),
  links: field(
    z.record(text, text),
    'The addresses of pages: `first`, `last`, and `next` and `previous` where there are any.',
  ),
});

type Contents = Readonly<Record<string, Schema>>;

const feedOf = (document: z.ZodType): Contents => ({
  'application/json': jsonSchema(document),
  'application/rss+xml': { type: 'string', description: 'The same as Media RSS.' },
});

/** A stream: its playlist, its manifest, and the files of the packager that these name. */
const streamOf = (id: string, path: string, name: string, lasts: string) => `
${id}Manifest | GET ${path}.m3u8 | ${name} | An HLS playlist, ${lasts} Once there are segments, it leads to the playlist of the packager. Before, and without a packager, it lists none. 404 with the code \`not_available\` if the packager refuses the stream.
${id}Dash | GET ${path}.mpd | ${name} as DASH | Leads to the manifest of the packager. 404 while there is no segment, and without a packager; with the code \`not_available\` if the packager refuses the stream.
${id}HlsFile | GET ${path}/hls/*file | A file of ${name.toLowerCase()} as HLS | A playlist, a manifest or a segment, as the packager has it, or a range of it, as long as viewers may watch the stream. With \`dvr\` off, playlists list the last 30 seconds of a live event.
${id}DashFile | GET ${path}/dash/*file | A file of ${name.toLowerCase()} as DASH | A playlist, a manifest or a segment, as the packager has it, or a range of it, as long as viewers may watch the stream. With \`dvr\` off, a manifest lists the last 30 seconds of a live event.
`;

const STREAMS = [
  streamOf(
    'event',
    '/live/events/:eventId',
    'The stream of a live event',
    'while viewers may watch the event, and of its replay.',
  ),
  streamOf('media', '/manifests/:mediaId', 'The stream of a media', 'while viewers may watch the media.'),
  streamOf(
    'preview',
    '/live/previews/:previewToken',
    'The preview of a live event',
    'as long as the event lasts, also before it is published. Its address is the `preview_url` of the channel.',
  ),
];

const DELIVERED = `
channelDocument | GET /live/channels/:channelId.json | The state of a channel | Whether the channel has an event that viewers may watch. Players ask for it every few seconds.
mediaDocument | GET /v2/media/:mediaId | The document of a media | The playlist for a player: a media, or a live event under its id. Custom parameters are fields of the item, and never replace another one.
playlistDocument | GET /v2/playlists/:playlistId | The document of a playlist | The media of a playlist that viewers may watch now. Other parameters are ignored.
${STREAMS.map((rows) => rows.trim()).join('\n')}
renditionFile | GET /videos/:mediaId-:renditionId.:ending | The file of a rendition | The converted file, or the uploaded one where nothing converts it. A range of it can be asked for.
masterFile | GET /live/masters/:token.mp4 | The file of a master | The recording of a live event as it came from the encoder, at the \`delivery_url\` of its master, until that expires. A range of it can be asked for.
trackFile | GET /tracks/:trackId.:ending | The file of a text track | The file as it was uploaded, once the track is published. A range of it can be asked for.
mediaPoster | GET /v2/media/:mediaId/poster.:ending | The poster of a media | The picture that was uploaded as the poster, or one with the title that the emulator draws. A range of it can be asked for.
thumbnailPicture | GET /thumbnails/:thumbnailId{.:ending} | The picture of a thumbnail | The picture that was uploaded, or one with the title that the emulator draws. An ending such as \`.jpg\` may follow. A range of it can be asked for.
`;

const found = (content: Contents, headers?: Answer['headers']): Row['answers'] => ({
  200: answer('It is there.', content, headers),
});
const WRONG_QUERY = {
  400: json('A parameter, or the path, is not of its form.', z.union([MESSAGE, errorsAnswer])),
};
const TO_PACKAGER = { 302: answer('There are segments: `location` is their address.') };

const file = (description: string): Schema => ({ type: 'string', format: 'binary', description });
const lists = (type: string): Contents => ({
  [type]: { type: 'string', description: 'The list of segments.' },
});
const VIDEO_OR_AUDIO = { 'video/*': file('A video.'), 'audio/*': file('An audio.') };
const TRACK = { 'text/*': file('The track.'), 'application/*': file('The track.') };
const PICTURE = { 'image/*': file('The picture.') };

const ranged = (content: Contents): Row['answers'] => ({
  206: answer('The range of bytes that was asked for.', content),
  416: json('The file has no such range of bytes.', MESSAGE),
});

const segmentsOf = (type: string) => {
  const content = { ...lists(type), ...VIDEO_OR_AUDIO };
  return { ...found(content), ...ranged(content), 502: json('The packager does not answer.', MESSAGE) };
};

const FILE_HEADERS: Answer['headers'] = {
  etag: { description: 'The MD5 of an uploaded file, in quotes.', schema: { type: 'string' } },
  'accept-ranges': { description: 'Always `bytes`.', schema: { type: 'string' } },
};

const fileOf = (content: Contents) => ({
  ...found(content, FILE_HEADERS),
  ...ranged(content),
  412: json('The file is not the one that `if-match` names.', MESSAGE),
});

const WIDTH = parameter('width', 'Pixels, of a picture that the emulator draws.', {
  type: 'integer',
  minimum: 1,
  maximum: 9999,
  default: 1280,
});

const streamAnswers = Object.fromEntries(
  ['event', 'media', 'preview'].flatMap((id) => [
    [`${id}Manifest`, { ...found(lists(HLS)), ...TO_PACKAGER }],
    [`${id}Dash`, TO_PACKAGER],
    [`${id}HlsFile`, segmentsOf(HLS)],
    [`${id}DashFile`, segmentsOf(DASH)],
  ]),
);

const ANSWERS: Readonly<Record<string, Row['answers']>> = {
  channelDocument: found({ 'application/json': jsonSchema(ChannelDocument) }),
  mediaDocument: { ...found(feedOf(MediaDocument)), ...WRONG_QUERY },
  playlistDocument: { ...found(feedOf(PlaylistDocument)), ...WRONG_QUERY },
  ...streamAnswers,
  renditionFile: fileOf(VIDEO_OR_AUDIO),
  masterFile: fileOf(VIDEO_OR_AUDIO),
  trackFile: fileOf(TRACK),
  mediaPoster: fileOf(PICTURE),
  thumbnailPicture: fileOf({ ...PICTURE, 'video/*': file('A moving one.') }),
};

const PARAMETERS: Readonly<Record<string, Row['parameters']>> = {
  mediaDocument: queryParameters(Formatted),
  playlistDocument: queryParameters(PlaylistQuery),
  mediaPoster: [WIDTH],
  thumbnailPicture: [WIDTH],
};

const ABSENT = json('There is nothing under this id, or nothing that viewers may have now.', MESSAGE);

export const DELIVERY: Group = {
  tag: 'Public delivery',
  says: 'Delivery for players and mobile apps. No credential is needed.',
  rows: rowsOf(DELIVERED, ({ id }) => ({
    parameters: PARAMETERS[id] ?? [],
    answers: { ...ANSWERS[id], 404: ABSENT },
  })),
};
