package numbers

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/antrail/antrail/control/cluster"
)

// OpenFlow priorities of Antrea-native rules.
//
// Tier, policy priority and place in the policy give the order of rules: Order. A flow
// entry has 16 bits of priority, and a policy's priority is a float. So no formula gives
// every rule its own number. Three steps choose the number:
//
//  1. Antrea's formula. It leaves room where new rules are likely.
//  2. If that number is taken or out of order, the rules of a policy go as a block into
//     the gap between their neighbours.
//  3. If the gap is too small, the fewest neighbours move, by the least. HasMoved reports
//     this. The caller then puts the entries of all moved rules into one bundle.
//
// Rules of equal order (two policies of one tier and priority) share a number.

// Order is the rank of a rule. The lower rank decides first.
type Order struct {
	Tier     int32
	Priority float64
	Index    int
}

// Compare is negative if o decides before p.
func (o Order) Compare(p Order) int {
	return cmp.Or(cmp.Compare(o.Tier, p.Tier), cmp.Compare(o.Priority, p.Priority), cmp.Compare(o.Index, p.Index))
}

// Block has the ranks of a policy's rules of one direction: indexes 0 to Size-1.
type Block struct {
	Tier     int32
	Priority float64
	Size     int
}

// At is the rank of the rule with an index.
func (b Block) At(index int) Order { return Order{b.Tier, b.Priority, index} }

// errNoPriority refuses a policy for which no priority is free.
var errNoPriority = errors.New("all flow priorities of the table are taken: there are too many rules of different rank")

// Zone is a range of priorities for rules of a table, with the formula for the first choice.
type Zone struct {
	lowest, highest int
	first           func(Order) int
}

// Size is the number of priorities in a zone.
func (z Zone) Size() int { return z.highest - z.lowest + 1 }

// Rules of Antrea-native policies stay below the entries for established connections
// (64990). Those of the Baseline tier stay between the table-miss and the isolation of
// NetworkPolicies (200).
var (
	AntreaZone = Zone{100, 64989, func(o Order) int {
		step := 20.0
		if o.Tier == cluster.DefaultTierPriorities[cluster.DefaultTier] {
			step = 100
		}
		return 65000 - 200*int(o.Tier) - int(math.Round(step*o.Priority)) - o.Index
	}}
	BaselineZone = Zone{10, 180, func(o Order) int {
		return 180 - int(math.Round(10*o.Priority)) - o.Index
	}}
)

// zoneMargin is the room left beside a neighbour when there is plenty.
const zoneMargin = 5

// NewPriorities makes the priorities of a table without rules.
func NewPriorities(z Zone) *Priorities { return &Priorities{zone: z} }

// Priorities assigns priorities to the rules of one table.
type Priorities struct {
	zone   Zone
	placed []placedRule // in order: rank rising, priority falling
	moved  bool         // see HasMoved
}

type placedRule struct {
	Order
	priority uint16 // of the entries, where Order.Priority is the policy's
	users    int
}

// Assign gives every rule of a block a priority. Each Assign needs a Free. It returns an
// error, and changes nothing, if the zone has too few priorities left.
func (p *Priorities) Assign(b Block) error {
	start := p.find(b.At(0))
	have := 0
	for have < b.Size && start+have < len(p.placed) && p.placed[start+have].Order == b.At(have) {
		have++
	}
	if err := p.insert(start+have, b, have); err != nil {
		return err
	}
	for i := range b.Size {
		p.placed[start+i].users++
	}
	return nil
}

// Free takes back the priorities of a block.
func (p *Priorities) Free(b Block) {
	start := p.find(b.At(0))
	for i := start; i < start+b.Size; i++ {
		p.placed[i].users--
	}
	// Blocks of one rank begin together, so the rules without users are at the end.
	kept := start
	for kept < start+b.Size && p.placed[kept].users > 0 {
		kept++
	}
	p.placed = slices.Delete(p.placed, kept, start+b.Size)
}

// HasMoved reports whether a rule moved to another priority since ForgetMoves, to make room
// for a new one.
func (p *Priorities) HasMoved() bool { return p.moved }

// ForgetMoves resets HasMoved.
func (p *Priorities) ForgetMoves() { p.moved = false }

// Of returns the priority of a rule that has one.
func (p *Priorities) Of(o Order) uint16 { return p.placed[p.find(o)].priority }

// All yields each rank with its priority, by falling priority.
func (p *Priorities) All() iter.Seq2[Order, uint16] {
	return func(yield func(Order, uint16) bool) {
		for _, r := range p.placed {
			if !yield(r.Order, r.priority) {
				return
			}
		}
	}
}

// Restore gives a rank the priority that it had in an earlier process. It returns false if
// that priority would break the order. Ranks may come in any order.
func (p *Priorities) Restore(o Order, priority uint16) bool {
	pos := p.find(o)
	above, below := p.bounds(pos)
	if pos < len(p.placed) && p.placed[pos].Order == o || int(priority) >= above || int(priority) <= below {
		return false
	}
	p.placed = slices.Insert(p.placed, pos, placedRule{o, priority, 0})
	return true
}

// FreeUnclaimed frees the restored priorities that no block has.
func (p *Priorities) FreeUnclaimed() {
	p.placed = slices.DeleteFunc(p.placed, func(r placedRule) bool { return r.users == 0 })
}

// find returns the place of a rank in placed, or where to insert it.
func (p *Priorities) find(o Order) int {
	return sort.Search(len(p.placed), func(i int) bool { return p.placed[i].Compare(o) >= 0 })
}

// insert places the rules from index `from` of a block before placed[pos].
func (p *Priorities) insert(pos int, b Block, from int) error {
	size := b.Size - from
	if size == 0 {
		return nil
	}
	above, below := p.bounds(pos)
	if need := size - (above - below - 1); need > 0 {
		if !p.makeRoom(pos, need) {
			return errNoPriority
		}
		above, below = p.bounds(pos)
	}
	top := place(p.zone.first(b.At(from)), below+size, above-1)
	block := make([]placedRule, size)
	for i := range block {
		block[i] = placedRule{b.At(from + i), uint16(top - i), 0}
	}
	p.placed = slices.Insert(p.placed, pos, block...)
	return nil
}

// bounds returns the priorities beside the gap before placed[pos]. The gap lies strictly
// between them.
func (p *Priorities) bounds(pos int) (above, below int) {
	above, below = p.zone.highest+1, p.zone.lowest-1
	if pos > 0 {
		above = int(p.placed[pos-1].priority)
	}
	if pos < len(p.placed) {
		below = int(p.placed[pos].priority)
	}
	return above, below
}

// place chooses the highest priority of a block between low and high. It takes the formula's,
// or one a little off the neighbour in its way. In a narrow gap it takes the middle.
func place(want, low, high int) int {
	switch {
	case want >= low && want <= high:
		return want
	case high-low < 2*zoneMargin:
		return (low + high) / 2
	case want > high:
		return high - zoneMargin
	}
	return low + zoneMargin
}

// makeRoom widens the gap before placed[pos] by need. It moves neighbours on the side where
// fewer have to move, or on both sides if one has too little room.
func (p *Priorities) makeRoom(pos, need int) bool {
	above, below := p.bounds(pos)
	freeAbove := p.zone.highest - above + 1 - pos
	freeBelow := below - p.zone.lowest + 1 - (len(p.placed) - pos)
	if freeAbove+freeBelow < need {
		return false
	}
	up := need
	switch {
	case freeAbove < need:
		up = max(freeAbove, 0)
	case freeBelow >= need && p.pushDown(pos, need, false) < p.pushUp(pos, need, false):
		up = 0
	}
	p.moved = true
	p.pushUp(pos, up, true)
	p.pushDown(pos, need-up, true)
	return true
}

// pushUp counts the rules that move if placed[pos-1] moves up by n: itself and those before
// it that are in the way. With move it moves them.
func (p *Priorities) pushUp(pos, n int, move bool) (count int) {
	if n == 0 || pos == 0 {
		return 0
	}
	want := int(p.placed[pos-1].priority) + n
	for i := pos - 1; i >= 0 && int(p.placed[i].priority) < want; i-- {
		if move {
			p.placed[i].priority = uint16(want)
		}
		want++
		count++
	}
	return count
}

// pushDown is pushUp for placed[pos] and those after it, downwards.
func (p *Priorities) pushDown(pos, n int, move bool) (count int) {
	if n == 0 || pos == len(p.placed) {
		return 0
	}
	want := int(p.placed[pos].priority) - n
	for i := pos; i < len(p.placed) && int(p.placed[i].priority) > want; i++ {
		if move {
			p.placed[i].priority = uint16(want)
		}
		want--
		count++
	}
	return count
}
