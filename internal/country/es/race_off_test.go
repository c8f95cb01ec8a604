//go:build !race

package es_test

const raced = false
