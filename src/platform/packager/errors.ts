import { errorsOf, HTTP_ERRORS } from '../../http/errors';

export const packagerError = errorsOf({
  ...HTTP_ERRORS,
  unauthorized: {
    status: 401,
    says: "Send the packager's API key (PACKAGER_APIKEY) in the header x-api-key.",
  },
  page_refused: {
    status: 403,
    says: 'Without PACKAGER_APIKEY, the packager takes changes from programs, and none from pages of a browser.',
  },
  invalid_stream_id: {
    status: 400,
    says: 'The id of a stream has 1 to 100 letters, digits, _, - and ., and begins with a letter or a digit.',
  },
  stream_not_found: { status: 404, says: 'There is no stream with this id.' },
  media_not_found: {
    status: 404,
    says: 'There is no such file: the stream is unknown, or has nothing to play yet.',
  },
  stream_of_another_kind: { status: 409 },
  stream_is_ending: {
    status: 409,
    says: 'The stream is being deleted. Send the request again in a moment.',
  },
  nothing_recorded: { status: 409 },
  recording_failed: { status: 500 },
  ffmpeg_missing: {
    status: 501,
    says: 'The packager has no ffmpeg. Install it, or set PACKAGER_FFMPEG.',
  },
  conversion_failed: { status: 422 },
  range_not_satisfiable: { status: 416, says: 'The file has no such range of bytes.' },
  insufficient_storage: { status: 507 },
});
