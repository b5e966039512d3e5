package control

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"
)

// OpenFlow priorities of Antrea-native rules.
//
// What decides first is given by tier, by policy and by the rule's place in
// its policy: ruleOrder. A table has 16 bits of priority, and the policies'
// own are floats, so no formula can give every rule a number of its own. The
// first try is a formula all the same, Antrea's, as it leaves room where room
// is likely to be asked for. When its number is taken, or would be out of
// order, the rules of a policy go as a block into the gap between their
// neighbours; when that is too small, the fewest neighbours are moved, by the
// least. Who moved is told by comparing before and after; the rules' entries
// then change in one bundle.
//
// Rules of equal order (two policies of one tier and priority) share a number:
// neither comes before the other.

// ruleOrder is the rank of a rule; the lower decides first.
type ruleOrder struct {
	tier     int32
	priority float64
	index    int
}

func (o ruleOrder) compare(p ruleOrder) int {
	return cmp.Or(cmp.Compare(o.tier, p.tier), cmp.Compare(o.priority, p.priority), cmp.Compare(o.index, p.index))
}

// ruleBlock is the ranks of a policy's rules of one direction: indexes 0 to
// size-1.
type ruleBlock struct {
	tier     int32
	priority float64
	size     int
}

func (b ruleBlock) at(index int) ruleOrder { return ruleOrder{b.tier, b.priority, index} }

// errNoPriority is what a policy is refused with that finds no priority free.
var errNoPriority = errors.New("all flow priorities of the table are taken: there are too many rules of different rank")

// ruleZone is the priorities of a table that rules may have, and the formula.
type ruleZone struct {
	lowest, highest int
	first           func(ruleOrder) int
}

// The zones: Antrea-native policies stay below the entries for established
// connections (64990), those of Baseline between the table-miss and the
// isolation of K8s policies (200).
var (
	antreaZone = ruleZone{100, 64989, func(o ruleOrder) int {
		step := 20.0
		if o.tier == defaultTierPriorities[DefaultTier] {
			step = 100
		}
		return 65000 - 200*int(o.tier) - int(math.Round(step*o.priority)) - o.index
	}}
	baselineZone = ruleZone{10, 180, func(o ruleOrder) int {
		return 180 - int(math.Round(10*o.priority)) - o.index
	}}
)

// zoneMargin is the room left beside a neighbour when there is plenty.
const zoneMargin = 5

// priorities gives the rules of one table their priorities.
type priorities struct {
	zone   ruleZone
	placed []placedRule // in order: rank rising, priority falling
	moved  bool         // since whoever asks set it false: some rule has another priority
}

type placedRule struct {
	ruleOrder
	priority uint16 // in the table; hides the policy's, which stands in ruleOrder
	users    int
}

// acquire gives every rule of a block a priority; release must follow. On an
// error nothing has changed.
func (p *priorities) acquire(b ruleBlock) error {
	start := p.find(b.at(0))
	have := 0
	for have < b.size && start+have < len(p.placed) && p.placed[start+have].ruleOrder == b.at(have) {
		have++
	}
	if err := p.insert(start+have, b, have); err != nil {
		return err
	}
	for i := range b.size {
		p.placed[start+i].users++
	}
	return nil
}

// release takes back what acquire gave.
func (p *priorities) release(b ruleBlock) {
	start := p.find(b.at(0))
	for i := start; i < start+b.size; i++ {
		p.placed[i].users--
	}
	// Blocks of one rank begin together, so what nobody uses is at the end.
	kept := start
	for kept < start+b.size && p.placed[kept].users > 0 {
		kept++
	}
	p.placed = slices.Delete(p.placed, kept, start+b.size)
}

// of returns the priority of a rule that was acquired.
func (p *priorities) of(o ruleOrder) uint16 { return p.placed[p.find(o)].priority }

// find is where a rank is or would be.
func (p *priorities) find(o ruleOrder) int {
	return sort.Search(len(p.placed), func(i int) bool { return p.placed[i].compare(o) >= 0 })
}

// insert places the rules from index `from` of a block before placed[pos].
func (p *priorities) insert(pos int, b ruleBlock, from int) error {
	size := b.size - from
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
	top := place(p.zone.first(b.at(from)), below+size, above-1)
	block := make([]placedRule, size)
	for i := range block {
		block[i] = placedRule{b.at(from + i), uint16(top - i), 0}
	}
	p.placed = slices.Insert(p.placed, pos, block...)
	return nil
}

// bounds are the priorities beside the gap before placed[pos]: the gap is what
// lies strictly between.
func (p *priorities) bounds(pos int) (above, below int) {
	above, below = p.zone.highest+1, p.zone.lowest-1
	if pos > 0 {
		above = int(p.placed[pos-1].priority)
	}
	if pos < len(p.placed) {
		below = int(p.placed[pos].priority)
	}
	return above, below
}

// place chooses the highest priority of a block between low and high: the one
// of the formula, else a little off the neighbour that is in its way, else the
// middle.
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

// makeRoom widens the gap before placed[pos] by need, moving the neighbours on
// the side where fewer have to move, or on both when one has too little room.
func (p *priorities) makeRoom(pos, need int) bool {
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

// pushUp moves placed[pos-1] up by n, and those before it as far as they are in
// the way. It returns how many that are; only with move does it move them.
func (p *priorities) pushUp(pos, n int, move bool) (count int) {
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

// pushDown does the same to placed[pos] and those after it, downwards.
func (p *priorities) pushDown(pos, n int, move bool) (count int) {
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
