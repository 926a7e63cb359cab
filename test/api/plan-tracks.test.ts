import { planBatch } from '../../src/api/plan-batch';
import { CPIX_OF_TRACKS } from '../support/cpix-of-tracks';

it.each([
  ['tracks', { streams: [{ cpix: CPIX_OF_TRACKS, tracks: { SD: ['a', 'b'], HD: 'c' } }], groups: [] }],
  [
    'qualities',
    {
      streams: [],
      groups: [
        {
          cpix: CPIX_OF_TRACKS,
          keys: 'quality',
          members: ['SD', 'HD'].map((quality) => ({ streamid: quality, quality })),
        },
      ],
    },
  ],
])('%s have one reading of their document, and a request each', async (_what, body) => {
  const planned = await planBatch(body);
  const plan = planned.ok ? planned.value : [];
  const requests = plan.map((member) => (member.kind === 'member' ? member.request : undefined));
  const documents = requests.map((request) => (request?.source === 'cpix' ? request.document : undefined));
  expect(documents[0]).toMatchObject({ version: '2.3' });
  expect(new Set(documents).size).toBe(1);
  expect(new Set(requests).size).toBe(2);
});
