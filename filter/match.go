package filter

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"golang.org/x/net/bpf"
)

// Matching of frames. A classic BPF program is interpreted instruction by instruction. But each
// program here is only loads, comparisons and jumps. So each comparison becomes one check with
// its loads: some bits of a few bytes have to lie between two numbers. A frame of another
// protocol costs two or three checks.

// check is one comparison. The compared value is in the upper bits of four bytes.
type check struct {
	reach     uint32 // a frame of this length has four bytes at off; beyond if off is not fixed
	off       uint32 // of the first byte
	mask      uint32
	low, span uint32 // masked, it is one of low … low+span
	yes, no   int32  // the next check, or an end
	size      uint8  // bytes: 1, 2, 4; 0 for the length of the frame
	ip4       uint32 // if not 0, off grows by the length of the IPv4 header that begins here
}

// beyond is longer than any frame.
const beyond = 1<<32 - 1

// Results of checks.
const (
	wanted   = -1
	unwanted = -2
)

// Match says whether a frame matches. A frame that is too short for a check does not.
func (f *Filter) Match(frame []byte) bool {
	at := f.first
	for at >= 0 {
		c := &f.checks[at]
		var v uint32
		if uint(c.reach) <= uint(len(frame)) {
			v = binary.BigEndian.Uint32(frame[c.off:])
		} else if w, ok := c.load(frame); ok {
			v = w
		} else {
			return false
		}
		if v&c.mask-c.low <= c.span {
			at = c.yes
		} else {
			at = c.no
		}
	}
	return at == wanted
}

// load loads the value of a check; false if the frame is too short.
func (c *check) load(frame []byte) (uint32, bool) {
	if c.size == 0 {
		return uint32(len(frame)), true
	}
	off := uint64(c.off)
	if c.ip4 != 0 {
		if uint64(len(frame)) <= uint64(c.ip4) {
			return 0, false
		}
		off += uint64(frame[c.ip4]&0xf) * 4
	}
	if off+uint64(c.size) > uint64(len(frame)) {
		return 0, false
	}
	var four [4]byte
	copy(four[:c.size], frame[off:])
	return binary.BigEndian.Uint32(four[:]), true
}

// checker converts a program to checks.
type checker struct {
	program []bpf.Instruction
	checks  []check
	at      map[place]int32 // the checks that begin there
}

// place is an instruction, with the frame's type (its bytes 12 and 13) if it is known there to
// be one of etherTypes.
type place struct {
	pc     int
	known  bool
	typeIs uint32
}

// checksOf converts a program of this package to checks. first is the first check.
func checksOf(program []bpf.Instruction) (checks []check, first int32) {
	k := &checker{program: program, at: map[place]int32{}}
	first = k.from(place{})
	return k.checks, first
}

// from is the check, or the result, that begins at a place.
func (k *checker) from(begin place) int32 {
	if at, ok := k.at[begin]; ok {
		return at
	}
	c := check{mask: 1<<32 - 1, reach: beyond}
	for pc := begin.pc; ; pc++ {
		switch i := k.program[pc].(type) {
		case bpf.RetConstant:
			if i.Val == 0 {
				return unwanted
			}
			return wanted
		case bpf.Jump:
			pc += int(i.Skip)
		case bpf.LoadAbsolute:
			c.off, c.size = i.Off, uint8(i.Size)
			c.reach = uint32(min(uint64(i.Off)+4, beyond))
		case bpf.LoadExtension: // of the length, the only one
			c.size = 0
		case bpf.LoadMemShift:
			c.ip4 = i.Off
		case bpf.LoadIndirect:
			c.off, c.size = i.Off, uint8(i.Size)
		case bpf.ALUOpConstant: // of and, the only one
			c.mask = i.Val
		case bpf.JumpIf:
			return k.put(begin, c, pc, &i)
		}
	}
}

// put makes the check whose loads begin at a place and whose jump is at pc, unless its result
// is known there.
func (k *checker) put(begin place, c check, pc int, i *bpf.JumpIf) int32 {
	yes, no := begin, begin
	yes.pc, no.pc = pc+1+int(i.SkipTrue), pc+1+int(i.SkipFalse)
	if asksType := c.off == 12 && c.size == 2 && c.ip4 == 0 && c.mask == 1<<32-1 && i.Cond == bpf.JumpEqual; asksType {
		switch {
		case begin.known && begin.typeIs == i.Val:
			return k.from(yes)
		case begin.known:
			return k.from(no)
		}
		if slices.Contains(slices.Collect(maps.Values(etherTypes)), i.Val) {
			yes.known, yes.typeIs = true, i.Val
		}
	}
	at := int32(len(k.checks))
	k.at[begin] = at
	k.checks = append(k.checks, c)
	yesAt, noAt := k.from(yes), k.from(no)
	k.checks[at].compare(i.Cond, i.Val, yesAt, noAt)
	return at
}

// compare sets the comparison of a check.
func (c *check) compare(cond bpf.JumpTest, val uint32, yes, no int32) {
	switch cond {
	case bpf.JumpNotEqual, bpf.JumpLessThan, bpf.JumpLessOrEqual, bpf.JumpBitsNotSet:
		cond, yes, no = contrary[cond], no, yes
	}
	c.yes, c.no = yes, no
	most := uint32(1<<32 - 1)
	if c.size != 0 {
		most >>= 32 - 8*c.size
	}
	low, high := val, val
	switch cond {
	case bpf.JumpGreaterThan:
		low, high = val+1, most
	case bpf.JumpGreaterOrEqual:
		high = most
	case bpf.JumpBitsSet:
		c.mask &= val
		low, high = 1, most
	}
	if low > most || low > high || cond == bpf.JumpGreaterThan && val == 1<<32-1 {
		c.yes = c.no // no value is so large
	}
	shift := bits.LeadingZeros32(most)
	c.mask, c.low, c.span = c.mask<<shift, low<<shift, (min(high, most)-min(low, most))<<shift
}

// contrary are opposite comparisons.
var contrary = map[bpf.JumpTest]bpf.JumpTest{
	bpf.JumpNotEqual: bpf.JumpEqual, bpf.JumpLessThan: bpf.JumpGreaterOrEqual, bpf.JumpLessOrEqual: bpf.JumpGreaterThan, bpf.JumpBitsNotSet: bpf.JumpBitsSet,
}
