// Package filter compiles tcpdump expressions (pcap-filter(7)) to classic BPF
// programs, which say whether an Ethernet frame is wanted.
//
//	scan.go     the text as words
//	parse.go    words as a tree, with tcpdump's precedence and shortenings
//	test.go     the tests of one thing: a host, a port, a protocol
//	access.go   … or of bytes: tcp[tcpflags] & tcp-syn != 0
//	bpfprogram.go the tree as a program
//	match.go    the program as checks, which frames are asked
//
// It is the part of the language that names what a packet's headers hold: host,
// net, port, portrange, proto, with src and dst, and with ether, ip, ip6, arp,
// tcp, udp and sctp; icmp, icmp6, broadcast, multicast, vlan, less, greater, and
// bytes of a header compared with a number. Names of hosts, networks and ports
// are not looked up. What libpcap knows beyond that (gateway, protochain,
// arithmetic, other link types) is refused with the place. Meanings are
// libpcap's, which a test compares with.
package filter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// maxText bounds an expression, in bytes, and maxProgram what becomes of it, in
// instructions: the kernel's own limit.
const (
	maxText    = 16 << 10
	maxProgram = 4096
)

// Filter is a compiled expression. It may be used by several goroutines.
type Filter struct {
	program []bpf.Instruction
	checks  []check
	first   int32 // of the checks, or an end
	deep    bool
}

// Error is a mistake in an expression.
type Error struct {
	Text   string // the expression
	Column int    // in bytes, from 1
	What   string
}

// Error shows the place.
func (e *Error) Error() string {
	return fmt.Sprintf("filter %q, column %d: %s", e.Text, e.Column, e.What)
}

// Compile makes a filter of expressions, all of which have to hold; an empty one
// always does. The error is an *Error.
func Compile(expressions ...string) (*Filter, error) {
	f := &Filter{}
	wanted := node(func(_ *code, yes, _ int) int { return yes })
	for _, text := range expressions {
		n, deep, err := parse(text)
		if err != nil {
			return nil, err
		}
		f.deep = f.deep || deep
		wanted = and(wanted, n)
	}
	f.program = assemble(wanted)
	if len(f.program) > maxProgram {
		return nil, &Error{expressions[len(expressions)-1], 1, fmt.Sprintf("the program has %d instructions; %d are the most", len(f.program), maxProgram)}
	}
	f.checks, f.first = checksOf(f.program)
	return f, nil
}

// Deep says whether the filter asks for more than addresses, protocols, ports
// and TCP flags, so that packets of one connection may differ in it.
func (f *Filter) Deep() bool { return f.deep }
