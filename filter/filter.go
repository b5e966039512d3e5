// Package filter compiles tcpdump expressions (pcap-filter(7)) to classic BPF programs, which
// say whether an Ethernet frame matches.
//
//	scan.go     the text as words
//	parse.go    words as a tree, with tcpdump's precedence and abbreviations
//	test.go     tests of a host, a port or a protocol
//	access.go   tests of bytes: tcp[tcpflags] & tcp-syn != 0
//	bpfprogram.go the tree as a program
//	match.go    the program as checks, which match frames
//
// The language has the part of tcpdump's that tests headers:
//
//   - host, net, port, portrange and proto, with src and dst, and with ether, ip, ip6, arp,
//     tcp, udp and sctp,
//   - icmp, icmp6, broadcast, multicast, vlan, less and greater,
//   - bytes of a header compared with a number.
//
// Names of hosts, networks and ports are not looked up. An expression of libpcap beyond that
// (gateway, protochain, arithmetic, other link types) is an error with its place. Meanings are
// libpcap's; a test compares with it.
package filter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// maxText bounds an expression in bytes. maxProgram bounds its program in instructions: the
// kernel's own limit.
const (
	maxText    = 16 << 10
	maxProgram = 4096
)

// Filter is a compiled expression. Several goroutines may use it.
type Filter struct {
	program []bpf.Instruction
	checks  []check
	first   int32 // of the checks, or an end
	deep    bool
}

// Error is a fault in an expression.
type Error struct {
	Text   string // the expression
	Column int    // in bytes, from 1
	What   string
}

// Error shows the place of the fault.
func (e *Error) Error() string {
	return fmt.Sprintf("filter %q, column %d: %s", e.Text, e.Column, e.What)
}

// Compile makes a filter of expressions that all have to match; an empty one always does. The
// error is an *Error.
func Compile(expressions ...string) (*Filter, error) {
	f := &Filter{}
	wanted := node(always)
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
		return nil, &Error{expressions[len(expressions)-1], 1, fmt.Sprintf("the program has %d instructions, want %d at most", len(f.program), maxProgram)}
	}
	f.checks, f.first = checksOf(f.program)
	return f, nil
}

// Deep says whether the filter tests more than addresses, protocols, ports and TCP flags. Then
// packets of one connection may differ in the result.
func (f *Filter) Deep() bool { return f.deep }
