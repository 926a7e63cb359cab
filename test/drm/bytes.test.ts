import { decodeBase64Block } from '../../src/drm/bytes';

test('names hex where base64 belongs', () => {
  expect(decodeBase64Block('0123456789abcdef0123456789abcdef')).toEqual({
    ok: false,
    fault: 'looks like hex (read as base64 it is 24 bytes); send the base64 of the 16 bytes',
  });
});
