/** The body of an answer with problems of one code. */
export const errorBody = (code: string, ...descriptions: unknown[]) => ({
  errors: descriptions.map((description) => ({ code, description })),
});

export const invalidBody = (...descriptions: unknown[]) => errorBody('invalid_body', ...descriptions);
