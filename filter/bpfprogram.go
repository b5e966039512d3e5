package filter

import (
	"slices"

	"golang.org/x/net/bpf"
)

// A program is written from its end to its beginning, because jumps only go forward. So each
// instruction knows the distance of its jump. A label is the number of instructions from a
// place to the end.

// code is a program, its last instruction first.
type code struct{ backwards []bpf.Instruction }

// node is a part of an expression. It writes instructions that continue at the label yes or no,
// and returns the label of its first instruction.
type node func(c *code, yes, no int) int

func and(a, b node) node {
	return func(c *code, yes, no int) int { return a(c, b(c, yes, no), no) }
}

func or(a, b node) node {
	return func(c *code, yes, no int) int { return a(c, yes, b(c, yes, no)) }
}

func not(a node) node {
	return func(c *code, yes, no int) int { return a(c, no, yes) }
}

// anyOf holds if one of the nodes does.
func anyOf(all ...node) node {
	n := node(never)
	for _, m := range all {
		n = or(n, m)
	}
	return n
}

// allOf holds if all nodes do.
func allOf(all ...node) node {
	n := node(always)
	for _, m := range all {
		n = and(n, m)
	}
	return n
}

// never and always test nothing, and need no code.
func never(_ *code, _, no int) int   { return no }
func always(_ *code, yes, _ int) int { return yes }

// put writes an instruction in front and returns its label.
func (c *code) put(i bpf.Instruction) int {
	c.backwards = append(c.backwards, i)
	return len(c.backwards)
}

// branch writes a jump to yes or no. If a conditional jump does not reach that far, it goes
// through unconditional ones.
func (c *code) branch(cond bpf.JumpTest, val uint32, yes, no int) int {
	const reach = 255
	if len(c.backwards)-yes > reach-1 {
		yes = c.put(bpf.Jump{Skip: uint32(len(c.backwards) - yes)})
	}
	if len(c.backwards)-no > reach {
		no = c.put(bpf.Jump{Skip: uint32(len(c.backwards) - no)})
	}
	here := len(c.backwards)
	return c.put(bpf.JumpIf{Cond: cond, Val: val, SkipTrue: uint8(here - yes), SkipFalse: uint8(here - no)})
}

// test loads a value, instruction by instruction, and compares it.
func test(cond bpf.JumpTest, val uint32, load ...bpf.Instruction) node {
	return func(c *code, yes, no int) int {
		at := c.branch(cond, val, yes, no)
		for _, i := range slices.Backward(load) {
			at = c.put(i)
		}
		return at
	}
}

// assemble makes the complete program.
func assemble(n node) []bpf.Instruction {
	c := &code{}
	no := c.put(bpf.RetConstant{Val: 0})
	yes := c.put(bpf.RetConstant{Val: 0xffffffff})
	if at := n(c, yes, no); at != len(c.backwards) {
		c.put(bpf.Jump{Skip: uint32(len(c.backwards) - at)})
	}
	slices.Reverse(c.backwards)
	return c.backwards
}
