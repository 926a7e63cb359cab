import { errorsOf, HTTP_ERRORS } from '../../http/errors';
import type { ErrorEntry } from '../../http/faults';

const PACKAGER_ERRORS = {
  unauthorized: {
    status: 401,
    when: 'The header `x-api-key` is missing or is not the key of this packager.',
    says: "Send the packager's API key (PACKAGER_APIKEY) in the header x-api-key.",
  },
  invalid_stream_id: {
    status: 400,
    when: 'The id in the path cannot be one.',
    says: 'The id of a stream has 1 to 100 letters, digits, _, - and ., and begins with a letter or a digit.',
  },
  stream_not_found: {
    status: 404,
    when: 'The packager has no stream with this id.',
    says: 'There is no stream with this id.',
  },
  media_not_found: {
    status: 404,
    when: 'The stream has no such file, or none yet.',
    says: 'There is no such file: the stream is unknown, or has nothing to play yet.',
  },
  stream_of_another_kind: {
    status: 409,
    when: 'The stream exists as a file instead of live, or is protected where it should not be, or the other way around.',
    example: 'The stream exists as a file. Delete it first.',
  },
  stream_is_ending: {
    status: 409,
    when: 'The stream is being deleted.',
    says: 'The stream is being deleted. Send the request again in a moment.',
  },
  nothing_recorded: {
    status: 409,
    when: 'The part of the stream that was asked for has no media.',
    example: 'The stream has 12.5 seconds of media, and nothing from 20 to 30.',
  },
  recording_failed: {
    status: 500,
    when: 'ffmpeg could not write the recording.',
    example: 'The recording could not be written: ffmpeg is not installed (PACKAGER_FFMPEG).',
  },
  ffmpeg_missing: {
    status: 501,
    when: 'A file is to be converted, and ffmpeg is not there.',
    says: 'The packager has no ffmpeg. Install it, or set PACKAGER_FFMPEG.',
  },
  conversion_failed: {
    status: 422,
    when: 'ffmpeg could not convert the file, or was ended.',
    example: "ffmpeg can't convert the file: source: Invalid data found when processing input.",
  },
  range_not_satisfiable: {
    status: 416,
    when: 'The file has no such range of bytes.',
    says: 'The file has no such range of bytes.',
  },
  insufficient_storage: {
    status: 507,
    when: 'The disk is full, or the limit of all files (`PACKAGER_MAXMB`) is reached.',
    example: 'The disk of the packager is full. Make room, or choose another PACKAGER_FOLDER.',
  },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

export const packagerError = errorsOf({ ...HTTP_ERRORS, ...PACKAGER_ERRORS });
