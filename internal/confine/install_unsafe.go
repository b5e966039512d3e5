//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// install puts a filter into all threads at once (seccomp(2), TSYNC). The kernel's
// audit log names what the filter refuses.
func install(code []unix.SockFilter) error {
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_LOG)
	thread, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	if err != 0 {
		return fmt.Errorf("seccomp filter of %d instructions: %w", len(code), err)
	}
	if thread != 0 {
		return fmt.Errorf("seccomp filter: thread %d has another filter: call Enter first in main", thread)
	}
	return nil
}
