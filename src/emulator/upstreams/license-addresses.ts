/** License addresses on names that are reserved for examples (RFC 2606): a player that calls one reaches nobody. */
export const PLAYREADY_LICENSE_URL = 'https://playready-license.example.com/rightsmanager.asmx';
export const WIDEVINE_LICENSE_URL = 'https://widevine-license.example.com/proxy';
export const FAIRPLAY_LICENSE_URL = 'skd://fairplay-license.example.com/license';
export const AES_KEY_URL = 'https://keyprovider.example.com/aes/getkey';
