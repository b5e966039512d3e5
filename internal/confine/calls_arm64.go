//go:build linux

package confine

import "golang.org/x/sys/unix"

const machine = unix.AUDIT_ARCH_AARCH64

// ofMachine are calls that the Go runtime or x/sys make on this machine only.
var ofMachine = []uint32{unix.SYS_FSTATAT}
