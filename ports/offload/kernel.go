// Package offload lets the kernel forward packets of established connections between pods, the
// Node and other Nodes. It has two eBPF programs on the veths' Node ends, one at the gateway and
// one at the underlay. They are assembled here instruction by instruction. Memory shared with
// them has the offload entries.
//
//	kernel.go          programs and maps; opening, changing, closing
//	adopt.go           programs and maps that another process has made
//	settle.go          waiting until no packet uses withdrawn entries
//	memory_unsafe.go   the maps' memory as Go sees it
//	layout.go          offsets in that memory, and a small assembler
//	filter.go          the filter on the packet socket: which packets use an offload entry
//	windows.go         … their TCP windows
//	ingress.go         the program at tc ingress: changes and sends them
//	outer.go           the kinds of outer headers
//	wrap.go            … to another Node, in outer headers
//	unwrap.go          the program at the underlay: takes packets out of outer headers
//	fromstack.go       the program at the gateway: takes packets of the Node's own stack
//	try.go             all of it, over frames of a test
//
// A packet meets the filter first. The kernel shows each received frame to packet sockets before
// it runs tc ingress, both in one go on one processor. So one lookup decides: either the socket
// gets the packet, or ingress sends it, never both and never neither.
//
//	keys        hash: ports.OffloadKey -> index of an offload entry
//	offloads    array of ports.OffloadEntry, mapped into the process
//	conns       array of ports.SharedConn, mapped too
//	control     the generation, and a line for each processor, mapped too
//
// The filter goes with the socket. If the process is killed, ingress stays at the link and drops
// every frame that no filter has selected.
package offload

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// DefaultRoom is the default number of offload entries. Each connection uses two to six, one for
// each direction and combination of TCP flags.
const DefaultRoom = 1 << 15

// Kernel is the programs and their memory. It implements ports.Offload.
type Kernel struct {
	maps
	filter, ingress, gateway *ebpf.Program

	unwraps [numOuters]*ebpf.Program // by index in outers

	offloadsAt []ports.OffloadEntry
	connsAt    []ports.SharedConn
	controlAt  []controlLine
	grace      *ebpf.Map // an array of maps, for waitForGrace
	inner      [2]*ebpf.Map
	waits      atomic.Uint32 // how often an inner map was put into grace
}

// maps is the maps of the programs.
type maps struct {
	keys, offloads, conns, control *ebpf.Map
	lines                          int // processors
}

// Open makes the maps and loads the programs. It needs CAP_BPF and CAP_NET_ADMIN. The error names
// the feature that the kernel lacks.
func Open(room int) (*Kernel, error) {
	k := &Kernel{}
	if err := k.open(room); err != nil {
		return nil, errors.Join(fmt.Errorf("offload: %w", err), k.Close())
	}
	return k, nil
}

func (k *Kernel) open(room int) (err error) {
	if b, err := os.ReadFile("/sys/kernel/realtime"); err == nil && strings.TrimSpace(string(b)) == "1" {
		return errors.New("a PREEMPT_RT kernel may run another packet's programs between the two of one packet")
	}
	if k.lines, err = ebpf.PossibleCPU(); err != nil {
		return err
	}
	if err := k.makeMaps(uint32(room)); err != nil {
		return err
	}
	if k.filter, err = load("antrail_filter", ebpf.SocketFilter, filterCode(&k.maps, skbIfindex)); err != nil {
		return err
	}
	if k.ingress, err = load("antrail_ingress", ebpf.SchedCLS, ingressCode(&k.maps, skbIfindex)); err != nil {
		return err
	}
	if k.gateway, err = load("antrail_gateway", ebpf.SchedCLS, gatewayCode(&k.maps, skbIfindex)); err != nil {
		return err
	}
	return loadUnwraps("antrail_unwrap", &k.unwraps, &k.maps, skbIfindex)
}

func (k *Kernel) makeMaps(room uint32) error {
	for _, m := range []struct {
		to   **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&k.keys, ebpf.MapSpec{Name: "antrail_keys", Type: ebpf.Hash, KeySize: ports.OffloadKeyLen, ValueSize: 4, MaxEntries: room, Flags: unix.BPF_F_NO_PREALLOC}},
		{&k.offloads, arraySpec("antrail_cuts", offloadSize, room)},
		{&k.conns, arraySpec("antrail_conns", connSize, room)},
		{&k.control, arraySpec("antrail_control", uint32(1+k.lines)*line, 1)},
		{&k.grace, graceSpec()},
		{&k.inner[0], *innerSpec()},
		{&k.inner[1], *innerSpec()},
	} {
		made, err := ebpf.NewMap(&m.spec)
		if err != nil {
			return fmt.Errorf("map %s: %w", m.spec.Name, err)
		}
		*m.to = made
	}
	return k.mapAll(room)
}

func arraySpec(name string, size, entries uint32) ebpf.MapSpec {
	return ebpf.MapSpec{Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: size, MaxEntries: entries, Flags: unix.BPF_F_MMAPABLE}
}

// Filter is the program for a port's packet socket.
func (k *Kernel) Filter() *ebpf.Program { return k.filter }

// Ingress is the program for tc ingress of its interface.
func (k *Kernel) Ingress() *ebpf.Program { return k.ingress }

// Gateway is the program for tc egress of the gateway.
func (k *Kernel) Gateway() *ebpf.Program { return k.gateway }

// Unwrap is the program for tc ingress of the underlay's link, for a kind of tunnel over IPv4 or
// IPv6.
func (k *Kernel) Unwrap(kind tunnel.Kind, over6 bool) *ebpf.Program {
	return k.unwraps[outerOf(kind, over6)]
}

// Room is the largest number of offload entries.
func (k *Kernel) Room() int { return len(k.offloadsAt) }

// OffloadEntry is the offload entry at an index.
func (k *Kernel) OffloadEntry(place uint32) *ports.OffloadEntry { return &k.offloadsAt[place] }

// Conns is the connections, by index.
func (k *Kernel) Conns() []ports.SharedConn { return k.connsAt }

// Generation is the generation of the valid offload entries.
func (k *Kernel) Generation() *atomic.Uint32 { return &k.controlAt[0].run }

// Learnings is the same for offload entries with OffloadLearned.
func (k *Kernel) Learnings() *atomic.Uint32 { return &k.controlAt[0].taken }

// Dropped counts packets that matched an offload entry and could not be rewritten.
func (k *Kernel) Dropped() uint64 { return k.controlAt[0].dropped.Load() }

// Put makes packets with a key use the offload entry at an index.
func (k *Kernel) Put(key *ports.OffloadKey, place uint32) error { return k.keys.Put(key[:], place) }

// Delete removes a key; it returns nil if the key is absent.
func (k *Kernel) Delete(key *ports.OffloadKey) error {
	if err := k.keys.Delete(key[:]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// Close closes programs and maps. The programs stay in the kernel while ports use them, but find
// no offload entry any more.
func (k *Kernel) Close() error {
	if len(k.controlAt) > 0 {
		k.Generation().Store(0)
	}
	var errs []error
	for _, p := range k.programs() {
		errs = append(errs, (*p).Close())
	}
	for _, m := range k.all() {
		errs = append(errs, (*m).Close())
	}
	return errors.Join(errs...)
}

func load(name string, kind ebpf.ProgramType, code asm.Instructions) (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: kind, License: "Apache-2.0", Instructions: code})
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	return p, nil
}
