package offload

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
)

// A privileged process may make programs and maps for an unprivileged one. Only the latter uses
// them: it writes the maps, and closes all when it ends.

// Layout numbers the layout of programs and maps, which a switch of another version may adopt. It
// changes with package ports' OffloadEntry, SharedConn and OffloadKey, and with layout.go.
const Layout = 5

// descriptors is how many descriptors a Kernel has.
const descriptors = 14

// Descriptors are the programs and maps, for Adopt. The Kernel still owns them.
func (k *Kernel) Descriptors() []int {
	var all []int
	for _, p := range k.programs() {
		all = append(all, (*p).FD())
	}
	for _, m := range k.all() {
		all = append(all, (*m).FD())
	}
	return all
}

// programs is pointers to the programs, in the order of Descriptors.
func (k *Kernel) programs() []**ebpf.Program {
	all := []**ebpf.Program{&k.filter, &k.ingress, &k.gateway}
	for i := range k.unwraps {
		all = append(all, &k.unwraps[i])
	}
	return all
}

// all is pointers to the maps, in the order of Descriptors.
func (k *Kernel) all() []**ebpf.Map {
	return []**ebpf.Map{&k.keys, &k.offloads, &k.conns, &k.control, &k.grace, &k.inner[0], &k.inner[1]}
}

// Adopt makes a Kernel from the descriptors of another one. It owns them from then on, also after
// an error. It needs no privilege. The other Kernel must not be used any more: its owner closes
// it before.
func Adopt(fds []int) (*Kernel, error) {
	k := &Kernel{}
	if err := k.adopt(fds); err != nil {
		return nil, errors.Join(fmt.Errorf("offload: taken over: %w", err), k.Close())
	}
	return k, nil
}

func (k *Kernel) adopt(fds []int) (err error) {
	rest := fds
	defer func() {
		for _, fd := range rest {
			os.NewFile(uintptr(fd), "").Close()
		}
	}()
	if len(fds) != descriptors {
		return fmt.Errorf("%d descriptors, want %d", len(fds), descriptors)
	}
	for _, p := range k.programs() {
		fd := rest[0]
		rest = rest[1:]
		if *p, err = ebpf.NewProgramFromFD(fd); err != nil {
			return err
		}
	}
	for _, m := range k.all() {
		fd := rest[0]
		rest = rest[1:]
		if *m, err = ebpf.NewMapFromFD(fd); err != nil {
			return err
		}
	}
	if k.lines = int(k.control.ValueSize())/line - 1; k.lines < 1 || k.offloads.ValueSize() != offloadSize || k.conns.ValueSize() != connSize || k.conns.MaxEntries() != k.offloads.MaxEntries() {
		return errors.New("the maps have another layout")
	}
	return k.mapAll(k.offloads.MaxEntries())
}
