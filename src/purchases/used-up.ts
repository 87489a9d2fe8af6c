/** The word for a consumable that was consumed before anybody brought it: it stays so, until an operator gives it away. */
export const usedUp = 'consumed_elsewhere'
