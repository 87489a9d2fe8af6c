/**
 * The cases that GrowthBook publishes for every implementation of its assignment (its sdk-js, `test/cases.json`), so that
 * our hash is held against an outside oracle.
 */

export const hashes: [seed: string, value: string, version: number, bucket: number | null][] = [
  ['', 'a', 1, 0.22],
  ['', 'b', 1, 0.077],
  ['b', 'a', 1, 0.946],
  ['ef', 'd', 1, 0.652],
  ['asdf', '8952klfjas09ujk', 1, 0.549],
  ['', '123', 1, 0.011],
  ['', '___)((*":&', 1, 0.563],
  ['seed', 'a', 2, 0.0505],
  ['seed', 'b', 2, 0.2696],
  ['foo', 'ab', 2, 0.2575],
  ['foo', 'def', 2, 0.2019],
  ['89123klj', '8952klfjas09ujkasdf', 2, 0.124],
  ['90850943850283058242805', '123', 2, 0.7516],
  ['()**(%$##$%#$#', '___)((*":&', 2, 0.0128],
  ['abc', 'def', 99, null],
]

export const ranges: [count: number, coverage: number, weights: number[] | null, ranges: [number, number][]][] = [
  [
    2,
    1,
    null,
    [
      [0, 0.5],
      [0.5, 1],
    ],
  ],
  [
    2,
    0.5,
    null,
    [
      [0, 0.25],
      [0.5, 0.75],
    ],
  ],
  [
    2,
    0,
    null,
    [
      [0, 0],
      [0.5, 0.5],
    ],
  ],
  [
    4,
    1,
    null,
    [
      [0, 0.25],
      [0.25, 0.5],
      [0.5, 0.75],
      [0.75, 1],
    ],
  ],
  [
    2,
    1,
    [0.4, 0.6],
    [
      [0, 0.4],
      [0.4, 1],
    ],
  ],
  [
    3,
    1,
    [0.2, 0.3, 0.5],
    [
      [0, 0.2],
      [0.2, 0.5],
      [0.5, 1],
    ],
  ],
  [
    3,
    0.2,
    [0.2, 0.3, 0.5],
    [
      [0, 0.04],
      [0.2, 0.26],
      [0.5, 0.6],
    ],
  ],
  [
    2,
    -0.2,
    null,
    [
      [0, 0],
      [0.5, 0.5],
    ],
  ],
  [
    2,
    1.5,
    null,
    [
      [0, 0.5],
      [0.5, 1],
    ],
  ],
  [
    2,
    1,
    [0.4, 0.1],
    [
      [0, 0.5],
      [0.5, 1],
    ],
  ],
  [
    2,
    1,
    [0.7, 0.6],
    [
      [0, 0.5],
      [0.5, 1],
    ],
  ],
  [
    4,
    1,
    [0.4, 0.4, 0.2],
    [
      [0, 0.25],
      [0.25, 0.5],
      [0.5, 0.75],
      [0.75, 1],
    ],
  ],
  [
    2,
    1,
    [0.4, 0.5999],
    [
      [0, 0.4],
      [0.4, 0.9999],
    ],
  ],
]

export const choices: [bucket: number, ranges: [number, number][], chosen: number][] = [
  [
    0.2,
    [
      [0, 0.5],
      [0.5, 1],
    ],
    0,
  ],
  [
    0.4,
    [
      [0, 0.5],
      [0.5, 1],
    ],
    0,
  ],
  [
    0.6,
    [
      [0, 0.5],
      [0.5, 1],
    ],
    1,
  ],
  [
    0.8,
    [
      [0, 0.5],
      [0.5, 1],
    ],
    1,
  ],
  [
    0,
    [
      [0, 0.5],
      [0.5, 1],
    ],
    0,
  ],
  [
    0.5,
    [
      [0, 0.5],
      [0.5, 1],
    ],
    1,
  ],
  [
    0.2,
    [
      [0, 0.25],
      [0.5, 0.75],
    ],
    0,
  ],
  [
    0.4,
    [
      [0, 0.25],
      [0.5, 0.75],
    ],
    -1,
  ],
  [
    0.6,
    [
      [0, 0.25],
      [0.5, 0.75],
    ],
    1,
  ],
  [
    0.8,
    [
      [0, 0.25],
      [0.5, 0.75],
    ],
    -1,
  ],
  [
    0.5,
    [
      [0, 0.5],
      [0.5, 0.5],
      [0.5, 1],
    ],
    2,
  ],
]

export const namespaces: [value: string, id: string, start: number, end: number, inside: boolean][] = [
  ['1', 'namespace1', 0, 0.4, false],
  ['1', 'namespace1', 0.4, 1, true],
  ['1', 'namespace2', 0, 0.4, false],
  ['1', 'namespace2', 0.4, 1, true],
  ['2', 'namespace1', 0, 0.4, false],
  ['2', 'namespace1', 0.4, 1, true],
  ['2', 'namespace2', 0, 0.4, false],
  ['2', 'namespace2', 0.4, 1, true],
  ['3', 'namespace1', 0, 0.4, false],
  ['3', 'namespace1', 0.4, 1, true],
  ['3', 'namespace2', 0, 0.4, true],
  ['3', 'namespace2', 0.4, 1, false],
  ['4', 'namespace1', 0, 0.4, false],
  ['4', 'namespace1', 0.4, 1, true],
  ['4', 'namespace2', 0, 0.4, true],
  ['4', 'namespace2', 0.4, 1, false],
]
