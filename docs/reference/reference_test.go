package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageIsFresh: the page is what the types say now.
func TestPageIsFresh(t *testing.T) {
	top := filepath.Join("..", "..")
	want, err := generate(top)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(top, page))
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the types say (%v): go run ./docs/reference", page, err)
	}
	if rows := strings.Count(want, "\n| `"); rows < 80 {
		t.Errorf("%d keys", rows)
	}
}
