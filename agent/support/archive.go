package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// Options say what an archive is made of.
type Options struct {
	Client  *api.Client
	Version string // of this program
	Config  string // file of the agent's configuration; "" for none
	Log     string // file of the agent's log; "" for none
	Drops   int    // how many of the last dropped packets are traced
	Redact  bool
	Now     time.Time
}

// file is a file of an archive.
type file struct {
	name string
	text []byte
}

// directory holds all files of an archive. It says nothing of the Node.
const directory = "antrail-support"

// collection has the files so far, and the errors.
type collection struct {
	o      Options
	files  []file
	errors []string
}

func (c *collection) addFile(name string, text []byte) { c.files = append(c.files, file{name, text}) }

func (c *collection) fail(name string, err error) {
	c.errors = append(c.errors, fmt.Sprintf("%s: %v", name, err))
}

// read adds a file of the Node, changed by edit.
func (c *collection) read(name, from string, edit func([]byte) []byte) {
	if from == "" {
		return
	}
	text, err := os.ReadFile(from)
	if err != nil {
		c.fail(name, err)
		return
	}
	c.addFile(name, edit(text))
}

// secret matches a line of YAML whose key names a secret.
var secret = regexp.MustCompile(`(?im)^(\s*-?\s*"?[a-z0-9_]*(?:psk|secret|password|passphrase|token|credential|privatekey|apikey)[a-z0-9_]*"?\s*:).*$`)

// withoutSecrets removes the values of secrets from a configuration. The agent's own has none:
// its token and certificates are in files that are not read here.
func withoutSecrets(text []byte) []byte {
	return secret.ReplaceAll(text, []byte("$1 withheld"))
}

// mostLog is how much of the end of a log is kept.
const mostLog = 8 << 20

func lastOfLog(text []byte) []byte {
	if len(text) <= mostLog {
		return text
	}
	text = text[len(text)-mostLog:]
	_, text, _ = bytes.Cut(text, []byte("\n"))
	return text
}

// versions adds the versions of the program and the kernel.
func (c *collection) versions() {
	kernel, err := os.ReadFile("/proc/version")
	if err != nil {
		c.fail("versions.txt", err)
	}
	text := fmt.Sprintf("%s\nkernel: %smade: %s\n", c.o.Version, kernel, c.o.Now.UTC().Format(time.RFC3339))
	c.addFile("versions.txt", []byte(text))
}

// write writes the archive.
func (c *collection) write(w io.Writer) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, f := range c.files {
		h := &tar.Header{Name: path.Join(directory, f.name), Mode: 0o600, Size: int64(len(f.text)), ModTime: c.o.Now}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(f.text); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zipped.Close()
}
