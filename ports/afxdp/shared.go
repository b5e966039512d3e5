package afxdp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// newShared is memory of size bytes that another process can map by its descriptor. Its size is
// sealed, so a process that has it mapped can rely on it.
func newShared(name string, size int) (fd int, memory []byte, err error) {
	if fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return -1, nil, fmt.Errorf("%s: %w", name, err)
	}
	err = unix.Ftruncate(fd, int64(size))
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		memory, err = mapShared(fd)
	}
	if err != nil {
		return -1, nil, errors.Join(fmt.Errorf("%s of %d bytes: %w", name, size, err), unix.Close(fd))
	}
	return fd, memory, nil
}

// mapShared maps all of the memory of newShared.
func mapShared(fd int) ([]byte, error) {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, errors.Join(errors.New("the memory's size is not sealed"), err)
	}
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return nil, err
	}
	return unix.Mmap(fd, 0, int(s.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
}

// sameFile says whether two descriptors refer to the same memory.
func sameFile(a, b int) bool {
	var sa, sb unix.Stat_t
	return unix.Fstat(a, &sa) == nil && unix.Fstat(b, &sb) == nil && sa.Dev == sb.Dev && sa.Ino == sb.Ino
}
