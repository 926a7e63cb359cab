export const PACKAGER_URL = 'http://127.0.0.1:8087';

/** How long `rotate --watch` waits unless `--timeout` is given, in seconds. */
export const WATCH_SECONDS = 600;

/** How long `--wait` waits for all packagers unless a number is given, in seconds. One stream has the sidecar's limit. */
export const WAIT_SECONDS = 60;

/** How long a test of a stream takes at most unless `--timeout` is given, in seconds. */
export const VERIFY_SECONDS = 120;
