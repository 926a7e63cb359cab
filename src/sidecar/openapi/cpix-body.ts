import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { cpixQuery } from '../../api/key-file-request';
import { MAX_CPIX_BYTES } from '../../drm/cpix/read';
import type { Example } from '../../http/openapi';
import { CPIX_TYPES } from '../request-body';
import { fileOf, SUPPLIED, WIDEVINE_BOX } from './examples';
import type { AnsweredError } from './operation';

const { cenc, fairplay } = SUPPLIED;

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');

/** The document as the body itself, by media type. */
export const CPIX_BODIES: Readonly<Record<string, OpenApi.SchemaObject>> = Object.fromEntries(
  CPIX_TYPES.map((type) => [
    type,
    {
      type: 'string',
      description: `A CPIX document in UTF-8 or UTF-16, ${MAX_CPIX_BYTES / 1024} KiB at most. The query chooses among its keys.`,
    },
  ]),
);

/** What the query says then, told from what it is read by. */
export const CPIX_PARAMETERS = Object.entries(cpixQuery.shape).map(
  ([name, field]): OpenApi.ParameterObject => {
    const given = withoutNull(field);
    const { $schema, description: _, ...schema } = z.toJSONSchema(given, { io: 'input' });
    return {
      name,
      in: 'query',
      required: false,
      description: `Only with a CPIX document as the body. ${(field.meta() ?? given.meta())?.description}`,
      schema: { ...schema, type: 'string' } as { type: 'string' },
    };
  },
);

function withoutNull(field: z.ZodType): z.ZodType {
  return field instanceof z.ZodOptional || field instanceof z.ZodNullable
    ? withoutNull(field.unwrap() as z.ZodType)
    : field;
}

export const CPIX_ERRORS = [
  'invalid_cpix',
  'cpix_choice',
  'cpix_not_usable',
  'cpix_not_opened',
] as const satisfies readonly AnsweredError[];

/** A document as a DRM service exports it: the sample of Vualto's packaging guide, without a PlayReady address. */
export const CPIX_DOCUMENT = `<?xml version="1.0" encoding="UTF-8"?>
<CPIX xmlns="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc" version="2.3">
  <ContentKeyList>
    <ContentKey kid="44da52ef-4523-098e-6854-777ee322681d" commonEncryptionScheme="cenc">
      <Data><pskc:Secret><pskc:PlainValue>${cenc.contentkey}</pskc:PlainValue></pskc:Secret></Data>
    </ContentKey>
    <ContentKey kid="d7a29956-2980-4338-b627-87c1f079e091" commonEncryptionScheme="cbcs"
      explicitIV="${base64(fairplay.iv)}">
      <Data><pskc:Secret><pskc:PlainValue>${base64(fairplay.key)}</pskc:PlainValue></pskc:Secret></Data>
    </ContentKey>
  </ContentKeyList>
  <DRMSystemList>
    <DRMSystem kid="44da52ef-4523-098e-6854-777ee322681d" systemId="edef8ba9-79d6-4ace-a3c8-27dcd51d21ed">
      <PSSH>${WIDEVINE_BOX}</PSSH>
    </DRMSystem>
    <DRMSystem kid="44da52ef-4523-098e-6854-777ee322681d" systemId="9a04f079-9840-4286-ab92-e65be0885f95"/>
    <DRMSystem kid="d7a29956-2980-4338-b627-87c1f079e091" systemId="94ce86fb-07ff-4f43-adb8-93d2fa968ca2">
      <URIExtXKey>${Buffer.from(fairplay.laurl).toString('base64')}</URIExtXKey>
    </DRMSystem>
  </DRMSystemList>
</CPIX>
`;

/** A document with a key for each quality, and nothing of DRM systems but their names. */
export const CPIX_OF_TRACKS = `<?xml version="1.0" encoding="UTF-8"?>
<CPIX xmlns="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc" version="2.3">
  <ContentKeyList>
    <ContentKey kid="44da52ef-4523-098e-6854-777ee322681d">
      <Data><pskc:Secret><pskc:PlainValue>${cenc.contentkey}</pskc:PlainValue></pskc:Secret></Data>
    </ContentKey>
    <ContentKey kid="a8c4ee9a-4cf9-76b8-1bba-c598f9f8b92c">
      <Data><pskc:Secret><pskc:PlainValue>ETweRxyDIuDqAadsWdx0HQ==</pskc:PlainValue></pskc:Secret></Data>
    </ContentKey>
  </ContentKeyList>
  <DRMSystemList>
    <DRMSystem kid="44da52ef-4523-098e-6854-777ee322681d" systemId="edef8ba9-79d6-4ace-a3c8-27dcd51d21ed">
      <PSSH>${WIDEVINE_BOX}</PSSH>
    </DRMSystem>
    <DRMSystem kid="a8c4ee9a-4cf9-76b8-1bba-c598f9f8b92c" systemId="edef8ba9-79d6-4ace-a3c8-27dcd51d21ed">
      <PSSH>AAAANXBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAABUiDXNvbWVjb250ZW50aWRI49yVmwY=</PSSH>
    </DRMSystem>
  </DRMSystemList>
  <ContentKeyUsageRuleList>
    <ContentKeyUsageRule kid="44da52ef-4523-098e-6854-777ee322681d" intendedTrackType="SD"/>
    <ContentKeyUsageRule kid="a8c4ee9a-4cf9-76b8-1bba-c598f9f8b92c" intendedTrackType="HD"/>
  </ContentKeyUsageRuleList>
</CPIX>
`;

/** Documents written as key files, in JSON and as the body itself. */
export function cpixExamples(): Record<string, Example> {
  const laurl = SUPPLIED.playready.laurl;
  const ofDocument = { cpix: CPIX_DOCUMENT, playready: { laurl } };
  const ofTrack = { cpix: CPIX_OF_TRACKS, track: 'HD' };
  const written = (body: object) => ({ status: 200, type: 'text/plain', value: fileOf(body) });
  return {
    document: {
      summary: 'A CPIX document',
      query: { laurl },
      body: { type: 'application/cpix+xml', value: CPIX_DOCUMENT },
      answer: written(ofDocument),
    },
    track: {
      summary: 'One track of a CPIX document, in JSON',
      body: { type: 'application/json', value: ofTrack },
      answer: written(ofTrack),
    },
  };
}
