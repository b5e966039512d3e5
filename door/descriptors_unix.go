//go:build unix

package door

import "golang.org/x/sys/unix"

// controlCut is set if a control message did not fit.
const controlCut = unix.MSG_CTRUNC

// controlSpace is the length of a control message with n descriptors.
func controlSpace(n int) int { return unix.CmsgSpace(4 * n) }

// controlOf is the control message that carries descriptors.
func controlOf(fds []int) []byte { return unix.UnixRights(fds...) }

// descriptors are those of a control message. They are closed on exec, so child processes do not
// get them.
func descriptors(control []byte) (fds []int, err error) {
	all, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		some, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fds, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}
