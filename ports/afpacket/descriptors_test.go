package afpacket

import (
	"errors"
	"testing"

	"github.com/antrail/antrail/internal/confinetest"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// TestProgramsConfined: a process without any capability gets programs, a map and a
// link by SCM_RIGHTS, and uses them; it can neither attach a program nor look one up.
func TestProgramsConfined(t *testing.T) {
	if confinetest.Inside() {
		insidePrograms(t)
		return
	}
	node, _, before := pair(t, Options{})
	prog, err := dropAll()
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	filter, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SocketFilter, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer filter.Close()
	table, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	shared, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 512, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	var l link.Link
	node.Do(t, func() {
		l, err = link.AttachTCX(link.TCXOptions{Interface: node.Link(t, "sw0").Attrs().Index, Program: prog, Attach: ebpf.AttachTCXIngress})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	given := []int{before.fd, prog.FD(), filter.FD(), table.FD(), l.(interface{ FD() int }).FD(), shared.FD()}
	if err := unix.Sendmsg(ends[0], []byte{1}, unix.UnixRights(given...), nil, 0); err != nil {
		t.Fatal(err)
	}
	if before.ring >= 0 {
		t.Log("io_uring's descriptor by SCM_RIGHTS: ", unix.Sendmsg(ends[0], []byte{1}, unix.UnixRights(before.ring), nil, 0))
	}
	confinetest.Start(t, node, "TestProgramsConfined", []int{ends[1]}).Wait(t)
	var v uint32
	if err := table.Lookup(uint32(1), &v); err != nil || v != 2 {
		t.Errorf("the map has %d, error %v", v, err)
	}
}

// insidePrograms uses what it is given.
func insidePrograms(t *testing.T) {
	t.Helper()
	rights := make([]byte, 128)
	_, n, _, _, err := unix.Recvmsg(3, make([]byte, 1), rights, 0)
	if err != nil {
		t.Fatal(err)
	}
	all, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&all[0])
	if err != nil || len(fds) != 6 {
		t.Fatal(fds, err)
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	failed := func(what string, err error) {
		t.Helper()
		if t.Logf("%s: %v", what, err); err == nil {
			t.Errorf("%s is allowed", what)
		}
	}
	refused := func(what string, err error) {
		t.Helper()
		t.Logf("%s: %v", what, err)
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v, want %v", what, err, unix.EPERM)
		}
	}
	must("SO_ATTACH_BPF", unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_ATTACH_BPF, fds[2]))
	must("SO_DETACH_FILTER", unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0))
	refused("SO_RCVBUFFORCE", unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20))
	prog, err := ebpf.NewProgramFromFD(fds[1])
	if err != nil {
		t.Fatal(err)
	}
	table, err := ebpf.NewMapFromFD(fds[3])
	if err != nil {
		t.Fatal(err)
	}
	must("map update", table.Put(uint32(1), uint32(2)))
	must("map update", table.Put(uint32(2), uint32(2)))
	must("map delete", table.Delete(uint32(2)))
	b, err := unix.Mmap(fds[5], 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must("memory of an array", err)
	if err == nil {
		b[0] = 1
		must("unmap", unix.Munmap(b))
	}
	l, err := link.NewFromFD(fds[4])
	if err != nil {
		t.Fatal(err)
	}
	must("link update", l.Update(prog))
	// The library reports these two as features that the kernel lacks.
	_, err = link.QueryPrograms(link.QueryOptions{Target: 1, Attach: ebpf.AttachTCXIngress})
	failed("BPF_PROG_QUERY", err)
	failed("BPF_PROG_ATTACH", link.RawAttachProgram(link.RawAttachProgramOptions{Target: 1, Program: prog, Attach: ebpf.AttachTCXIngress}))
	_, err = ebpf.NewProgramFromID(1)
	refused("BPF_PROG_GET_FD_BY_ID", err)
	_, err = dropAll()
	refused("BPF_PROG_LOAD", err)
	refused("BPF_LINK_DETACH", l.Detach())
}
