/** The key of the sidecars that tests start. */
export const API_KEY = 'sidecar-api-key-of-the-tests';
