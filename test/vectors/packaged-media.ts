import { manifests, media } from './packaged-media.json';

/** A segment of shaka-packager's, by its name in packaged-media.json. */
export function packagedMedia(name: string): Buffer {
  return Buffer.from(found(media, name).b64, 'base64');
}

/** A manifest or playlist of shaka-packager's. */
export function packagedManifest(name: string): string {
  return found(manifests, name).text;
}

function found<Vector extends { readonly name: string }>(vectors: readonly Vector[], name: string): Vector {
  const vector = vectors.find((candidate) => candidate.name === name);
  if (!vector) throw new Error(`packaged-media.json has no ${name}`);
  return vector;
}
