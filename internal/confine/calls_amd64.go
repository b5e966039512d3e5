//go:build linux

package confine

import "golang.org/x/sys/unix"

const machine = unix.AUDIT_ARCH_X86_64

// ofMachine are calls that the Go runtime or x/sys make on this machine only.
var ofMachine = []uint32{unix.SYS_NEWFSTATAT, unix.SYS_POLL, unix.SYS_DUP2, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_MKDIR}
