package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// unpack reads a tar archive: names to contents, links by their targets.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s: %d:%d of %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		all[h.Name] = h.Linkname + string(content)
	}
}

// anImage has a file, a program with libraries, and a link.
func anImage(t *testing.T) *order {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hello")
	if err := os.WriteFile(file, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	return &order{
		names: list{"example.org/a/b:1", "example.org/c:2"}, entrypoint: "/bin/sh,-c", arch: "amd64", root: "/", env: list{"PATH=/bin"},
		adds: list{file + ":/etc/hello"}, programs: list{shell + ":/bin/sh"}, links: list{"/run:/var/run"},
	}
}

func archiveOf(t *testing.T, o *order) []byte {
	t.Helper()
	files, err := o.files()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := o.archive(files)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// TestDigests follows the archive from its index to the layer, by digests.
func TestDigests(t *testing.T) {
	archive := archiveOf(t, anImage(t))
	if !bytes.Equal(archive, archiveOf(t, anImage(t))) {
		t.Error("the same files make another archive")
	}
	blobs := unpack(t, archive)
	get := func(d descriptor, into any) []byte {
		t.Helper()
		content := blobs[blobPath(d)]
		if d.Size != len(content) || d.Digest != fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))) {
			t.Fatalf("%v is not its blob of %d bytes", d, len(content))
		}
		if into != nil {
			if err := json.Unmarshal([]byte(content), into); err != nil {
				t.Fatal(err)
			}
		}
		return []byte(content)
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal([]byte(blobs["index.json"]), &index); err != nil || len(index.Manifests) != 2 {
		t.Fatalf("index %s: %v", blobs["index.json"], err)
	}
	if n := index.Manifests[1].Annotations["org.opencontainers.image.ref.name"]; n != "2" {
		t.Errorf("the second name is %q", n)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	get(index.Manifests[0], &manifest)
	var config struct {
		Config struct{ Entrypoint, Env []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	get(manifest.Config, &config)
	z, err := gzip.NewReader(bytes.NewReader(get(manifest.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); config.RootFS.DiffIDs[0] != want {
		t.Errorf("diff_id %s, want %s", config.RootFS.DiffIDs[0], want)
	}
	if e := strings.Join(config.Config.Entrypoint, " "); e != "/bin/sh -c" {
		t.Errorf("entrypoint %q", e)
	}
	files := unpack(t, content)
	if files["etc/hello"] != "hello\n" || files["var/run"] != "/run" || len(files["bin/sh"]) == 0 {
		t.Error("a file is missing or wrong")
	}
}

// TestProgramRuns: with nothing but the layer's files a program finds its libraries.
func TestProgramRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	files, err := anImage(t).files()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, e := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, e.Content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("chroot", root, "/bin/sh", "-c", "echo it runs").CombinedOutput()
	if err != nil || string(out) != "it runs\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRefused(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "no")
	for want, o := range map[string]*order{
		"no such file":       {adds: list{missing + ":/a"}},
		"is not FILE:PATH":   {adds: list{"/bin/sh"}},
		"is not TARGET:PATH": {links: list{"/run"}},
		"given twice":        {links: list{"/run:/a", "/etc:/a"}},
		"bad magic":          {programs: list{"image_test.go:/a"}, root: "/"},
		"want -o and -name":  {},
	} {
		_, err := o.files()
		if err == nil {
			err = o.write()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
