/**
 * The JavaScript client as a process: a line of JSON for each request, and one
 * for its answer. Keys are in the JSON of test/vectors.txt.
 */
import { createInterface } from 'node:readline';
import { BloomFilter, FormatError } from '../../clients/javascript/src/index.js';
import { decoder } from '../../clients/javascript/test/values.js';

const flags = (answers) => answers.map((answer) => (answer ? 't' : 'f')).join('');

const requests = {
  async probe({ filter, kind, keys }) {
    const bf = await BloomFilter.fromBase64(filter);
    return flags(bf.hasMany(keys.map(decoder(kind))));
  },
  async build({ options, kind, keys }) {
    const { key } = options;
    const bf = await BloomFilter.create({
      ...options, kind, key: key ? Uint8Array.from(Buffer.from(key, 'hex')) : null,
    });
    bf.update(keys.map(decoder(kind)));
    return bf.toBase64();
  },
  async append({ filter, kind, keys }) {
    const bf = await BloomFilter.fromBase64(filter);
    bf.update(keys.map(decoder(kind)));
    return bf.toBase64();
  },
  /** which of them are filters; what else is thrown is no answer */
  async open({ images }) {
    const answers = [];
    for (const image of images) {
      try {
        await BloomFilter.fromBytes(Buffer.from(image, 'base64'));
        answers.push(true);
      } catch (error) {
        if (!(error instanceof FormatError)) {
          throw error;
        }
        answers.push(false);
      }
    }
    return flags(answers);
  },
  async info({ filter }) {
    return (await BloomFilter.fromBase64(filter)).info;
  },
  async memory() {
    return process.memoryUsage().rss;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = { answer: await requests[request.do](request) };
  } catch (error) {
    answer = { error: error.stack };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
