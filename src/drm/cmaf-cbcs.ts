/* Sentences alone: the command line starts with them, and without the formats of DRM. */

export const NO_CMAF_CBCS =
  "the packager's manual has a page on CMAF HLS under cbcs, for live since version 4.8.28, whose key-file lines are not known";
export const CMAF_CBCS_REFUSED = `can't be cbcs: ${NO_CMAF_CBCS}; use cenc (or true) here, and fairplay for HLS`;
