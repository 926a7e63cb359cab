/** The sentences of the platform's contract about the move from v1 to v2, word for word: notes quote them. */
export const CONTRACT = {
  bearer:
    'Management API v2 uses Bearer authentication: header `Authorization: Bearer <V2_API_SECRET>`. v1 used signature-based authentication and is replaced.',
  filter: 'List routes accept query parameter `q` for filtering.',
  clients: 'Officially supported client libraries must be upgraded to their v2 versions.',
  v1Error:
    'v1 error body (replaced): object with `code` (for example `ServerError`) and `message`; one error at a time. `message` became `description`.',
  v2Error:
    'v2 error body: object with `errors`, an array; each item has `code` (short string meant for automation, snake case; `server_error` is the code shown) and `description` (human-readable explanation). Several errors can be returned in one response.',
  account: 'account → site: An account may hold multiple sites; an account equals a dashboard',
  channel:
    'channel → playlist: Query parameter `type` is now path parameter `playlist_type`; custom parameters become the single field `custom_params`; except `author`, `description`, `link`, `title`, fields move to the subresource of each playlist type (article matching, dynamic, manual, recommendations, search, trending)',
  conversion:
    'conversion → originals and media_renditions: Originals have their own endpoint; other conversions are `media_renditions`. Originals: `template` removed. Renditions: `duration` removed (only on originals), `template` removed, `link` replaced by string `delivery_url`, `filesize` is an integer instead of a string',
  player:
    'player → player: Custom parameters become `custom_params`; except `release_channel` and `name`, fields move into the `setup_config` object (any player option is allowed, API validation is removed)',
  tag: 'tag → none: Tags are an attribute of other resources such as media',
  thumbnail:
    'thumbnail → thumbnail: A thumbnail can be chosen as the poster of a media; earlier thumbnails can be listed',
  track: 'track → text_track: `link` object becomes string `delivery_url`; `md5` and `size` removed',
  usage: 'usage → none: Retrieved via an action endpoint',
  video: 'Resource renames: video → media',
  date: 'Media field renames: `date` to `publish_start_date`',
  error: 'Media field renames: `error` to `error_message`',
  expiresDate: 'Media field renames: `expires_date` to `publish_end_date`',
  link: 'Media field renames: `link` to `permalink`',
  mediatype: 'Media field renames: `mediatype` to `media_type`',
  sourceformat: 'Media field renames: `sourceformat` to `mime_type`',
  sourcetype: 'Media field renames: `sourcetype` to `hosting_type`',
  mediaRemoved: '`md5` and `size` removed',
  upload:
    'the upload fields `method`, `mime_type`, `source_url`, `download_url`, `trim_in_point`, `trim_out_point` move into an `upload` object',
  customNames:
    'v1 custom parameters are flat keys `custom.<name>`; an existing one is updated; a name starting with `-` deletes the parameter of the same name without the dash.',
  customReplaced:
    'v2 custom parameters are an object `metadata.custom_params`. On update, all keys to keep must be sent with their values; keys absent from the request are deleted.',
  playerFields:
    'v1 player fields (name, release_channel, aspectratio, responsive, autostart, displaydescription, displaytitle, playback_rate_controls, preload, repeat, stretching) sit at top level; in v2 only `name` and `release_channel` stay in `metadata`, and the others sit in `metadata.setup_config` (the playback-rate option is named `playbackRateControls` there).',
} as const;

/** Advice for users of the tool that the contract does not give. */
export const ADVICE = {
  format: 'v2 answers JSON only; v1 also answered XML and others, as `api_format` said.',
  pageLength: 'v1 lists 50 by default and v2 lists 10, so `page_length` is sent.',
  offset: 'v2 counts pages, not items: this offset is no whole number of pages. Read the page and skip.',
  limit: '`result_limit=0` has no counterpart; choose a `page_length`.',
  search:
    'v1 looks for a part of a text in several fields; in v2 each field is a part of `q`, with `*` around.',
  customSearch: 'v2 has no search in all custom parameters at once; name them, as `custom_params.<name>`.',
  sort: 'v2 sorts by `sort=<field>:asc` or `:dsc`, with the names that v2 gives the fields.',
  dateRange: 'The dates become a range of `publish_start_date` in `q`, in ISO 8601.',
  duration: 'v2 takes no `duration`.',
  noSort: 'v2 has no such field to sort or search by.',
  pageOfRest: 'The number of the page follows from the offset: offset / page_length + 1.',
  reupload:
    'A new file for a media is a call of its own in v2, the reupload of the media, which the mapping does not show.',
  sendFile:
    'The answer has `upload_link` (or `upload_id` and `upload_token` for multipart): the file goes there by PUT, not by a form.',
  playlistType: 'The playlist type is part of the path; read it from `playlist_type` of the playlist first.',
  defaultType: 'v1 makes a dynamic channel when `type` is left out.',
  playlistMembers:
    'v2 has no calls for single members: the list of media ids in `metadata.media_filter.include.values` is sent as a whole, so read it first.',
  playlistRead:
    'The mapping names PATCH for reading, too; the members are part of the playlist, so a GET of the same path reads them.',
  originals: 'v1 mixed originals and renditions in one list; v2 has a list for each.',
  mediaOfRendition: 'v1 knew a conversion by its key alone; v2 needs the media in the path.',
  mediaOfTrack: 'v1 knew a track by its key alone; v2 needs the media in the path.',
  template:
    'A rendition has no `template` in v2; the one to make it by is `relationships.media_rendition_template`.',
  thumbnailOf: 'v2 knows thumbnails by their own id; list those of the media first.',
  thumbnailFrame: 'A picture out of the video is a new thumbnail in v2, taken from `upload.source_media_id`.',
  trackFile: 'The file of a text track stays in v2; create another track.',
  setupReplaced:
    '`setup_config` is one field and is replaced as a whole: read the options to keep and send them again.',
  poster: 'The thumbnail of the call before is chosen as the poster; its id is in that answer.',
  noParameter: 'v2 has no place for this parameter; it is left out.',
  several: 'v2 deletes one resource with a call; repeat it for each key.',
  allCustom: 'The custom parameters that stay must be read first and sent again.',
  uploadRoute:
    'The upload of a file: in v2 it goes by PUT to the `upload_link` that the create call answers.',
} as const;

export const FORMS: Readonly<Record<string, string>> = {
  date: 'v2 takes ISO 8601, as 2026-01-31T14:00:00+00:00, in place of UNIX time.',
  list: 'v2 takes an array of texts in place of one text with commas.',
  format: 'v2 takes a media type, as video/mp4, in place of a name, as mp4.',
};
