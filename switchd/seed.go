package switchd

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The seed of select groups is in a file beside the socket. So a switch that has lost its
// connections still sends the packets of each to the same endpoint.

// LoadSeed reads the seed, or makes a random one and stores it. It replaces a file without a
// seed. It returns an error if the path is not a plain file, or cannot be read.
func LoadSeed(path string) (uint64, error) {
	st, err := os.Lstat(path)
	if err == nil && !st.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is there and is not a file", path)
	}
	if err == nil && st.Size() <= seedLen {
		var text []byte
		if text, err = os.ReadFile(path); err == nil {
			if seed, bad := strconv.ParseUint(strings.TrimSpace(string(text)), 16, 64); bad == nil && seed != 0 {
				return seed, nil
			}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return newSeed(path)
}

// seedLen is a seed's length as text: sixteen digits and a newline.
const seedLen = 17

// newSeed makes a random seed and writes it, in one step for readers.
func newSeed(path string) (uint64, error) {
	var b [8]byte
	for b == ([8]byte{}) {
		rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	}
	seed := binary.BigEndian.Uint64(b[:])
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(fresh, fmt.Appendf(nil, "%016x\n", seed), 0o600))
	if err == nil {
		err = os.Rename(fresh, path)
	}
	return seed, err
}
