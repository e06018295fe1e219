"""The instructions the direct generator knows: a table for `encode`.

For: `encode.OPS` and `encode.GPR`, which read a line when its name is first used. What would break
it: a wrong digit; every line is compared with LLVM's assembler in tests.

Sources: Intel's Software Developer's Manual, volume 2; AMD's, volumes 3 and 4.
"""

from __future__ import annotations

# name prefix map W opcode[/digit] memory vex [L]
#   memory: bytes of the memory operand, the unit of 8-bit displacements. A number; F a whole
#       vector, H Q O half, quarter, eighth of one; F4 F8 H4 the same, or one element broadcast;
#       D as vmovddup; V an instruction with VEX encoding alone (displacements in bytes).
#   vex: v v1 there is a VEX encoding, with W = 0 or 1; r the same, W = 0, for registers alone.
#   L: the vector length is fixed (scalars) or chosen by the instruction.
# A trailing _s: the memory or r/m operand is the destination. _v: by a vector of indices.
# _r: from or to a general register. i: by an immediate count. q: with a 64-bit general register.
VECTOR = """
vaddps np 0f 0 58 F4 v
vaddpd 66 0f 1 58 F8 v
vaddss f3 0f 0 58 4 v L0
vaddsd f2 0f 1 58 8 v L0
vmulps np 0f 0 59 F4 v
vmulpd 66 0f 1 59 F8 v
vmulss f3 0f 0 59 4 v L0
vmulsd f2 0f 1 59 8 v L0
vsubps np 0f 0 5c F4 v
vsubpd 66 0f 1 5c F8 v
vsubss f3 0f 0 5c 4 v L0
vsubsd f2 0f 1 5c 8 v L0
vminps np 0f 0 5d F4 v
vminpd 66 0f 1 5d F8 v
vminss f3 0f 0 5d 4 v L0
vminsd f2 0f 1 5d 8 v L0
vdivps np 0f 0 5e F4 v
vdivpd 66 0f 1 5e F8 v
vdivss f3 0f 0 5e 4 v L0
vdivsd f2 0f 1 5e 8 v L0
vmaxps np 0f 0 5f F4 v
vmaxpd 66 0f 1 5f F8 v
vmaxss f3 0f 0 5f 4 v L0
vmaxsd f2 0f 1 5f 8 v L0
vsqrtps np 0f 0 51 F4 v
vsqrtpd 66 0f 1 51 F8 v
vsqrtss f3 0f 0 51 4 v L0
vsqrtsd f2 0f 1 51 8 v L0
vandps np 0f 0 54 F4 v
vandpd 66 0f 1 54 F8 v
vandnps np 0f 0 55 F4 v
vandnpd 66 0f 1 55 F8 v
vorps np 0f 0 56 F4 v
vorpd 66 0f 1 56 F8 v
vxorps np 0f 0 57 F4 v
vxorpd 66 0f 1 57 F8 v
vcmpps np 0f 0 c2 F4 -
vcmppd 66 0f 1 c2 F8 -
vcmpss f3 0f 0 c2 4 - L0
vcmpsd f2 0f 1 c2 8 - L0
vucomiss np 0f 0 2e 4 v L0
vucomisd 66 0f 1 2e 8 v L0
vcomiss np 0f 0 2f 4 v L0
vcomisd 66 0f 1 2f 8 v L0
vfmadd132ps 66 0f38 0 98 F4 v
vfmadd132pd 66 0f38 1 98 F8 v1
vfmadd132ss 66 0f38 0 99 4 v L0
vfmadd132sd 66 0f38 1 99 8 v1 L0
vfmadd213ps 66 0f38 0 a8 F4 v
vfmadd213pd 66 0f38 1 a8 F8 v1
vfmadd213ss 66 0f38 0 a9 4 v L0
vfmadd213sd 66 0f38 1 a9 8 v1 L0
vfmadd231ps 66 0f38 0 b8 F4 v
vfmadd231pd 66 0f38 1 b8 F8 v1
vfmadd231ss 66 0f38 0 b9 4 v L0
vfmadd231sd 66 0f38 1 b9 8 v1 L0
vfmsub132ps 66 0f38 0 9a F4 v
vfmsub132pd 66 0f38 1 9a F8 v1
vfmsub132ss 66 0f38 0 9b 4 v L0
vfmsub132sd 66 0f38 1 9b 8 v1 L0
vfmsub213ps 66 0f38 0 aa F4 v
vfmsub213pd 66 0f38 1 aa F8 v1
vfmsub213ss 66 0f38 0 ab 4 v L0
vfmsub213sd 66 0f38 1 ab 8 v1 L0
vfmsub231ps 66 0f38 0 ba F4 v
vfmsub231pd 66 0f38 1 ba F8 v1
vfmsub231ss 66 0f38 0 bb 4 v L0
vfmsub231sd 66 0f38 1 bb 8 v1 L0
vfnmadd132ps 66 0f38 0 9c F4 v
vfnmadd132pd 66 0f38 1 9c F8 v1
vfnmadd132ss 66 0f38 0 9d 4 v L0
vfnmadd132sd 66 0f38 1 9d 8 v1 L0
vfnmadd213ps 66 0f38 0 ac F4 v
vfnmadd213pd 66 0f38 1 ac F8 v1
vfnmadd213ss 66 0f38 0 ad 4 v L0
vfnmadd213sd 66 0f38 1 ad 8 v1 L0
vfnmadd231ps 66 0f38 0 bc F4 v
vfnmadd231pd 66 0f38 1 bc F8 v1
vfnmadd231ss 66 0f38 0 bd 4 v L0
vfnmadd231sd 66 0f38 1 bd 8 v1 L0
vfnmsub132ps 66 0f38 0 9e F4 v
vfnmsub132pd 66 0f38 1 9e F8 v1
vfnmsub132ss 66 0f38 0 9f 4 v L0
vfnmsub132sd 66 0f38 1 9f 8 v1 L0
vfnmsub213ps 66 0f38 0 ae F4 v
vfnmsub213pd 66 0f38 1 ae F8 v1
vfnmsub213ss 66 0f38 0 af 4 v L0
vfnmsub213sd 66 0f38 1 af 8 v1 L0
vfnmsub231ps 66 0f38 0 be F4 v
vfnmsub231pd 66 0f38 1 be F8 v1
vfnmsub231ss 66 0f38 0 bf 4 v L0
vfnmsub231sd 66 0f38 1 bf 8 v1 L0
vrndscaleps 66 0f3a 0 08 F4 -
vrndscalepd 66 0f3a 1 09 F8 -
vrndscaless 66 0f3a 0 0a 4 - L0
vrndscalesd 66 0f3a 1 0b 8 - L0
vscalefps 66 0f38 0 2c F4 -
vscalefpd 66 0f38 1 2c F8 -
vscalefss 66 0f38 0 2d 4 - L0
vscalefsd 66 0f38 1 2d 8 - L0
vgetexpps 66 0f38 0 42 F4 -
vgetexppd 66 0f38 1 42 F8 -
vgetexpss 66 0f38 0 43 4 - L0
vgetexpsd 66 0f38 1 43 8 - L0
vgetmantps 66 0f3a 0 26 F4 -
vgetmantpd 66 0f3a 1 26 F8 -
vgetmantss 66 0f3a 0 27 4 - L0
vgetmantsd 66 0f3a 1 27 8 - L0
vfixupimmps 66 0f3a 0 54 F4 -
vfixupimmpd 66 0f3a 1 54 F8 -
vfixupimmss 66 0f3a 0 55 4 - L0
vfixupimmsd 66 0f3a 1 55 8 - L0
vrangeps 66 0f3a 0 50 F4 -
vrangepd 66 0f3a 1 50 F8 -
vrangess 66 0f3a 0 51 4 - L0
vrangesd 66 0f3a 1 51 8 - L0
vreduceps 66 0f3a 0 56 F4 -
vreducepd 66 0f3a 1 56 F8 -
vreducess 66 0f3a 0 57 4 - L0
vreducesd 66 0f3a 1 57 8 - L0
vfpclassps 66 0f3a 0 66 F4 -
vfpclasspd 66 0f3a 1 66 F8 -
vfpclassss 66 0f3a 0 67 4 - L0
vfpclasssd 66 0f3a 1 67 8 - L0
vrcp14ps 66 0f38 0 4c F4 -
vrcp14pd 66 0f38 1 4c F8 -
vrcp14ss 66 0f38 0 4d 4 - L0
vrcp14sd 66 0f38 1 4d 8 - L0
vrsqrt14ps 66 0f38 0 4e F4 -
vrsqrt14pd 66 0f38 1 4e F8 -
vrsqrt14ss 66 0f38 0 4f 4 - L0
vrsqrt14sd 66 0f38 1 4f 8 - L0
vunpcklps np 0f 0 14 F4 v
vunpcklpd 66 0f 1 14 F8 v
vunpckhps np 0f 0 15 F4 v
vunpckhpd 66 0f 1 15 F8 v
vshufps np 0f 0 c6 F4 v
vshufpd 66 0f 1 c6 F8 v
vmovups np 0f 0 10 F v
vmovups_s np 0f 0 11 F v
vmovupd 66 0f 1 10 F v
vmovupd_s 66 0f 1 11 F v
vmovaps np 0f 0 28 F v
vmovaps_s np 0f 0 29 F v
vmovapd 66 0f 1 28 F v
vmovapd_s 66 0f 1 29 F v
vmovss f3 0f 0 10 4 v L0
vmovss_s f3 0f 0 11 4 v L0
vmovsd f2 0f 1 10 8 v L0
vmovsd_s f2 0f 1 11 8 v L0
vmovhlps np 0f 0 12 - v L0
vmovlhps np 0f 0 16 - v L0
vmovlps np 0f 0 12 8 v L0
vmovlps_s np 0f 0 13 8 v L0
vmovhps np 0f 0 16 8 v L0
vmovhps_s np 0f 0 17 8 v L0
vmovddup f2 0f 1 12 D v
vmovshdup f3 0f 0 16 F v
vmovsldup f3 0f 0 12 F v
vmovntps_s np 0f 0 2b F v
vmovntpd_s 66 0f 1 2b F v
vmovntdq_s 66 0f 0 e7 F v
vmovntdqa 66 0f38 0 2a F v
vmovdqu f3 0f 0 6f F v
vmovdqu_s f3 0f 0 7f F v
vmovdqa 66 0f 0 6f F v
vmovdqa_s 66 0f 0 7f F v
vmovdqu8 f2 0f 0 6f F -
vmovdqu8_s f2 0f 0 7f F -
vmovdqu16 f2 0f 1 6f F -
vmovdqu16_s f2 0f 1 7f F -
vmovdqu32 f3 0f 0 6f F -
vmovdqu32_s f3 0f 0 7f F -
vmovdqu64 f3 0f 1 6f F -
vmovdqu64_s f3 0f 1 7f F -
vmovdqa32 66 0f 0 6f F -
vmovdqa32_s 66 0f 0 7f F -
vmovdqa64 66 0f 1 6f F -
vmovdqa64_s 66 0f 1 7f F -
vmovd_r 66 0f 0 6e 4 v L0
vmovq_r 66 0f 1 6e 8 v1 L0
vmovd_r_s 66 0f 0 7e 4 v L0
vmovq_r_s 66 0f 1 7e 8 v1 L0
vmovq f3 0f 1 7e 8 v L0
vmovq_s 66 0f 1 d6 8 v L0
vpaddb 66 0f 0 fc F v
vpaddw 66 0f 0 fd F v
vpaddd 66 0f 0 fe F4 v
vpaddq 66 0f 1 d4 F8 v
vpsubb 66 0f 0 f8 F v
vpsubw 66 0f 0 f9 F v
vpsubd 66 0f 0 fa F4 v
vpsubq 66 0f 1 fb F8 v
vpmullw 66 0f 0 d5 F v
vpmulld 66 0f38 0 40 F4 v
vpmullq 66 0f38 1 40 F8 -
vpmuludq 66 0f 1 f4 F8 v
vpmuldq 66 0f38 1 28 F8 v
vpmulhw 66 0f 0 e5 F v
vpmulhuw 66 0f 0 e4 F v
vpmaddwd 66 0f 0 f5 F v
vpmaddubsw 66 0f38 0 04 F v
vpsadbw 66 0f 0 f6 F v
vpaddsb 66 0f 0 ec F v
vpaddsw 66 0f 0 ed F v
vpaddusb 66 0f 0 dc F v
vpaddusw 66 0f 0 dd F v
vpsubsb 66 0f 0 e8 F v
vpsubsw 66 0f 0 e9 F v
vpsubusb 66 0f 0 d8 F v
vpsubusw 66 0f 0 d9 F v
vpminsb 66 0f38 0 38 F v
vpminsw 66 0f 0 ea F v
vpminsd 66 0f38 0 39 F4 v
vpminsq 66 0f38 1 39 F8 -
vpminub 66 0f 0 da F v
vpminuw 66 0f38 0 3a F v
vpminud 66 0f38 0 3b F4 v
vpminuq 66 0f38 1 3b F8 -
vpmaxsb 66 0f38 0 3c F v
vpmaxsw 66 0f 0 ee F v
vpmaxsd 66 0f38 0 3d F4 v
vpmaxsq 66 0f38 1 3d F8 -
vpmaxub 66 0f 0 de F v
vpmaxuw 66 0f38 0 3e F v
vpmaxud 66 0f38 0 3f F4 v
vpmaxuq 66 0f38 1 3f F8 -
vpabsb 66 0f38 0 1c F v
vpabsw 66 0f38 0 1d F v
vpabsd 66 0f38 0 1e F4 v
vpabsq 66 0f38 1 1f F8 -
vpandd 66 0f 0 db F4 v
vpandq 66 0f 1 db F8 v
vpandnd 66 0f 0 df F4 v
vpandnq 66 0f 1 df F8 v
vpord 66 0f 0 eb F4 v
vporq 66 0f 1 eb F8 v
vpxord 66 0f 0 ef F4 v
vpxorq 66 0f 1 ef F8 v
vpternlogd 66 0f3a 0 25 F4 -
vpternlogq 66 0f3a 1 25 F8 -
vpsrlwi 66 0f 0 71/2 F r
vpsrldi 66 0f 0 72/2 F4 r
vpsrlqi 66 0f 1 73/2 F8 r
vpsrawi 66 0f 0 71/4 F r
vpsradi 66 0f 0 72/4 F4 r
vpsraqi 66 0f 1 72/4 F8 -
vpsllwi 66 0f 0 71/6 F r
vpslldi 66 0f 0 72/6 F4 r
vpsllqi 66 0f 1 73/6 F8 r
vpsrldqi 66 0f 0 73/3 F r
vpslldqi 66 0f 0 73/7 F r
vprordi 66 0f 0 72/0 F4 -
vprorqi 66 0f 1 72/0 F8 -
vproldi 66 0f 0 72/1 F4 -
vprolqi 66 0f 1 72/1 F8 -
vpsrlw 66 0f 0 d1 16 v
vpsrld 66 0f 0 d2 16 v
vpsrlq 66 0f 1 d3 16 v
vpsraw 66 0f 0 e1 16 v
vpsrad 66 0f 0 e2 16 v
vpsraq 66 0f 1 e2 16 -
vpsllw 66 0f 0 f1 16 v
vpslld 66 0f 0 f2 16 v
vpsllq 66 0f 1 f3 16 v
vpsrlvw 66 0f38 1 10 F -
vpsrlvd 66 0f38 0 45 F4 v
vpsrlvq 66 0f38 1 45 F8 v1
vpsravw 66 0f38 1 11 F -
vpsravd 66 0f38 0 46 F4 v
vpsravq 66 0f38 1 46 F8 -
vpsllvw 66 0f38 1 12 F -
vpsllvd 66 0f38 0 47 F4 v
vpsllvq 66 0f38 1 47 F8 v1
vprolvd 66 0f38 0 15 F4 -
vprolvq 66 0f38 1 15 F8 -
vprorvd 66 0f38 0 14 F4 -
vprorvq 66 0f38 1 14 F8 -
vplzcntd 66 0f38 0 44 F4 -
vplzcntq 66 0f38 1 44 F8 -
vpopcntb 66 0f38 0 54 F -
vpopcntw 66 0f38 1 54 F -
vpopcntd 66 0f38 0 55 F4 -
vpopcntq 66 0f38 1 55 F8 -
vpcmpb 66 0f3a 0 3f F -
vpcmpub 66 0f3a 0 3e F -
vpcmpw 66 0f3a 1 3f F -
vpcmpuw 66 0f3a 1 3e F -
vpcmpd 66 0f3a 0 1f F4 -
vpcmpud 66 0f3a 0 1e F4 -
vpcmpq 66 0f3a 1 1f F8 -
vpcmpuq 66 0f3a 1 1e F8 -
vptestmb 66 0f38 0 26 F -
vptestmw 66 0f38 1 26 F -
vptestmd 66 0f38 0 27 F4 -
vptestmq 66 0f38 1 27 F8 -
vptestnmb f3 0f38 0 26 F -
vptestnmw f3 0f38 1 26 F -
vptestnmd f3 0f38 0 27 F4 -
vptestnmq f3 0f38 1 27 F8 -
vpmovm2b f3 0f38 0 28 - -
vpmovm2w f3 0f38 1 28 - -
vpmovm2d f3 0f38 0 38 - -
vpmovm2q f3 0f38 1 38 - -
vpmovb2m f3 0f38 0 29 - -
vpmovw2m f3 0f38 1 29 - -
vpmovd2m f3 0f38 0 39 - -
vpmovq2m f3 0f38 1 39 - -
vblendmps 66 0f38 0 65 F4 -
vblendmpd 66 0f38 1 65 F8 -
vpblendmb 66 0f38 0 66 F -
vpblendmw 66 0f38 1 66 F -
vpblendmd 66 0f38 0 64 F4 -
vpblendmq 66 0f38 1 64 F8 -
vpermb 66 0f38 0 8d F -
vpermw 66 0f38 1 8d F -
vpermd 66 0f38 0 36 F4 v
vpermq 66 0f3a 1 00 F8 v1
vpermq_v 66 0f38 1 36 F8 -
vpermps 66 0f38 0 16 F4 v
vpermpd 66 0f3a 1 01 F8 v1
vpermpd_v 66 0f38 1 16 F8 -
vpermilps 66 0f3a 0 04 F4 v
vpermilps_v 66 0f38 0 0c F4 v
vpermilpd 66 0f3a 1 05 F8 v
vpermilpd_v 66 0f38 1 0d F8 v
vpermi2b 66 0f38 0 75 F -
vpermi2w 66 0f38 1 75 F -
vpermi2d 66 0f38 0 76 F4 -
vpermi2q 66 0f38 1 76 F8 -
vpermi2ps 66 0f38 0 77 F4 -
vpermi2pd 66 0f38 1 77 F8 -
vpermt2b 66 0f38 0 7d F -
vpermt2w 66 0f38 1 7d F -
vpermt2d 66 0f38 0 7e F4 -
vpermt2q 66 0f38 1 7e F8 -
vpermt2ps 66 0f38 0 7f F4 -
vpermt2pd 66 0f38 1 7f F8 -
vpshufd 66 0f 0 70 F4 v
vpshufhw f3 0f 0 70 F v
vpshuflw f2 0f 0 70 F v
vpshufb 66 0f38 0 00 F v
vshuff32x4 66 0f3a 0 23 F4 -
vshuff64x2 66 0f3a 1 23 F8 -
vshufi32x4 66 0f3a 0 43 F4 -
vshufi64x2 66 0f3a 1 43 F8 -
vpunpcklbw 66 0f 0 60 F v
vpunpcklwd 66 0f 0 61 F v
vpunpckldq 66 0f 0 62 F4 v
vpunpcklqdq 66 0f 1 6c F8 v
vpunpckhbw 66 0f 0 68 F v
vpunpckhwd 66 0f 0 69 F v
vpunpckhdq 66 0f 0 6a F4 v
vpunpckhqdq 66 0f 1 6d F8 v
vpacksswb 66 0f 0 63 F v
vpackuswb 66 0f 0 67 F v
vpackssdw 66 0f 0 6b F4 v
vpackusdw 66 0f38 0 2b F4 v
valignd 66 0f3a 0 03 F4 -
valignq 66 0f3a 1 03 F8 -
vpalignr 66 0f3a 0 0f F v
vinsertf32x4 66 0f3a 0 18 16 v
vinsertf64x2 66 0f3a 1 18 16 -
vinsertf32x8 66 0f3a 0 1a 32 -
vinsertf64x4 66 0f3a 1 1a 32 -
vinserti32x4 66 0f3a 0 38 16 v
vinserti64x2 66 0f3a 1 38 16 -
vinserti32x8 66 0f3a 0 3a 32 -
vinserti64x4 66 0f3a 1 3a 32 -
vextractf32x4_s 66 0f3a 0 19 16 v
vextractf64x2_s 66 0f3a 1 19 16 -
vextractf32x8_s 66 0f3a 0 1b 32 -
vextractf64x4_s 66 0f3a 1 1b 32 -
vextracti32x4_s 66 0f3a 0 39 16 v
vextracti64x2_s 66 0f3a 1 39 16 -
vextracti32x8_s 66 0f3a 0 3b 32 -
vextracti64x4_s 66 0f3a 1 3b 32 -
vinsertps 66 0f3a 0 21 4 v L0
vextractps_s 66 0f3a 0 17 4 v L0
vpinsrb 66 0f3a 0 20 1 v L0
vpinsrw 66 0f 0 c4 2 v L0
vpinsrd 66 0f3a 0 22 4 v L0
vpinsrq 66 0f3a 1 22 8 v1 L0
vpextrb_s 66 0f3a 0 14 1 v L0
vpextrw_s 66 0f3a 0 15 2 v L0
vpextrd_s 66 0f3a 0 16 4 v L0
vpextrq_s 66 0f3a 1 16 8 v1 L0
vbroadcastss 66 0f38 0 18 4 v
vbroadcastsd 66 0f38 1 19 8 v
vbroadcastf32x2 66 0f38 0 19 8 -
vbroadcastf32x4 66 0f38 0 1a 16 -
vbroadcastf64x2 66 0f38 1 1a 16 -
vbroadcastf32x8 66 0f38 0 1b 32 -
vbroadcastf64x4 66 0f38 1 1b 32 -
vbroadcasti32x2 66 0f38 0 59 8 -
vbroadcasti32x4 66 0f38 0 5a 16 -
vbroadcasti64x2 66 0f38 1 5a 16 -
vbroadcasti32x8 66 0f38 0 5b 32 -
vbroadcasti64x4 66 0f38 1 5b 32 -
vpbroadcastb 66 0f38 0 78 1 v
vpbroadcastw 66 0f38 0 79 2 v
vpbroadcastd 66 0f38 0 58 4 v
vpbroadcastq 66 0f38 1 59 8 v
vpbroadcastb_r 66 0f38 0 7a - -
vpbroadcastw_r 66 0f38 0 7b - -
vpbroadcastd_r 66 0f38 0 7c - -
vpbroadcastq_r 66 0f38 1 7c - -
vgatherdps 66 0f38 0 92 4 -
vgatherdpd 66 0f38 1 92 8 -
vgatherqps 66 0f38 0 93 4 -
vgatherqpd 66 0f38 1 93 8 -
vpgatherdd 66 0f38 0 90 4 -
vpgatherdq 66 0f38 1 90 8 -
vpgatherqd 66 0f38 0 91 4 -
vpgatherqq 66 0f38 1 91 8 -
vscatterdps_s 66 0f38 0 a2 4 -
vscatterdpd_s 66 0f38 1 a2 8 -
vscatterqps_s 66 0f38 0 a3 4 -
vscatterqpd_s 66 0f38 1 a3 8 -
vpscatterdd_s 66 0f38 0 a0 4 -
vpscatterdq_s 66 0f38 1 a0 8 -
vpscatterqd_s 66 0f38 0 a1 4 -
vpscatterqq_s 66 0f38 1 a1 8 -
vcompressps_s 66 0f38 0 8a 4 -
vcompresspd_s 66 0f38 1 8a 8 -
vpcompressb_s 66 0f38 0 63 1 -
vpcompressw_s 66 0f38 1 63 2 -
vpcompressd_s 66 0f38 0 8b 4 -
vpcompressq_s 66 0f38 1 8b 8 -
vexpandps 66 0f38 0 88 4 -
vexpandpd 66 0f38 1 88 8 -
vpexpandb 66 0f38 0 62 1 -
vpexpandw 66 0f38 1 62 2 -
vpexpandd 66 0f38 0 89 4 -
vpexpandq 66 0f38 1 89 8 -
vcvtdq2ps np 0f 0 5b F4 v
vcvtps2dq 66 0f 0 5b F4 v
vcvttps2dq f3 0f 0 5b F4 v
vcvtdq2pd f3 0f 0 e6 H4 v
vcvtpd2dq f2 0f 1 e6 F8 v
vcvttpd2dq 66 0f 1 e6 F8 v
vcvtps2pd np 0f 0 5a H4 v
vcvtpd2ps 66 0f 1 5a F8 v
vcvtss2sd f3 0f 0 5a 4 v L0
vcvtsd2ss f2 0f 1 5a 8 v L0
vcvtudq2ps f2 0f 0 7a F4 -
vcvtudq2pd f3 0f 0 7a H4 -
vcvtps2udq np 0f 0 79 F4 -
vcvttps2udq np 0f 0 78 F4 -
vcvtpd2udq np 0f 1 79 F8 -
vcvttpd2udq np 0f 1 78 F8 -
vcvtqq2pd f3 0f 1 e6 F8 -
vcvtuqq2pd f3 0f 1 7a F8 -
vcvtqq2ps np 0f 1 5b F8 -
vcvtuqq2ps f2 0f 1 7a F8 -
vcvttpd2qq 66 0f 1 7a F8 -
vcvttpd2uqq 66 0f 1 78 F8 -
vcvttps2qq 66 0f 0 7a H4 -
vcvttps2uqq 66 0f 0 78 H4 -
vcvtph2ps 66 0f38 0 13 H v
vcvtps2ph_s 66 0f3a 0 1d H v
vcvtneps2bf16 f3 0f38 0 72 F4 -
vcvtne2ps2bf16 f2 0f38 0 72 F4 -
vdpbf16ps f3 0f38 0 52 F4 -
vpdpbusd 66 0f38 0 50 F4 -
vcvtsi2ss f3 0f 0 2a 4 v L0
vcvtsi2ssq f3 0f 1 2a 8 v1 L0
vcvtsi2sd f2 0f 0 2a 4 v L0
vcvtsi2sdq f2 0f 1 2a 8 v1 L0
vcvtusi2ss f3 0f 0 7b 4 - L0
vcvtusi2ssq f3 0f 1 7b 8 - L0
vcvtusi2sd f2 0f 0 7b 4 - L0
vcvtusi2sdq f2 0f 1 7b 8 - L0
vcvtss2si f3 0f 0 2d 4 v L0
vcvtss2siq f3 0f 1 2d 4 v1 L0
vcvtsd2si f2 0f 0 2d 8 v L0
vcvtsd2siq f2 0f 1 2d 8 v1 L0
vcvttss2si f3 0f 0 2c 4 v L0
vcvttss2siq f3 0f 1 2c 4 v1 L0
vcvttsd2si f2 0f 0 2c 8 v L0
vcvttsd2siq f2 0f 1 2c 8 v1 L0
vcvttss2usi f3 0f 0 78 4 - L0
vcvttss2usiq f3 0f 1 78 4 - L0
vcvttsd2usi f2 0f 0 78 8 - L0
vcvttsd2usiq f2 0f 1 78 8 - L0
vpmovzxbw 66 0f38 0 30 H v
vpmovzxbd 66 0f38 0 31 Q v
vpmovzxbq 66 0f38 0 32 O v
vpmovzxwd 66 0f38 0 33 H v
vpmovzxwq 66 0f38 0 34 Q v
vpmovzxdq 66 0f38 0 35 H v
vpmovsxbw 66 0f38 0 20 H v
vpmovsxbd 66 0f38 0 21 Q v
vpmovsxbq 66 0f38 0 22 O v
vpmovsxwd 66 0f38 0 23 H v
vpmovsxwq 66 0f38 0 24 Q v
vpmovsxdq 66 0f38 0 25 H v
vpmovwb_s f3 0f38 0 30 H -
vpmovdb_s f3 0f38 0 31 Q -
vpmovqb_s f3 0f38 0 32 O -
vpmovdw_s f3 0f38 0 33 H -
vpmovqw_s f3 0f38 0 34 Q -
vpmovqd_s f3 0f38 0 35 H -
vpmovswb_s f3 0f38 0 20 H -
vpmovsdb_s f3 0f38 0 21 Q -
vpmovsqb_s f3 0f38 0 22 O -
vpmovsdw_s f3 0f38 0 23 H -
vpmovsqw_s f3 0f38 0 24 Q -
vpmovsqd_s f3 0f38 0 25 H -
vpmovuswb_s f3 0f38 0 10 H -
vpmovusdb_s f3 0f38 0 11 Q -
vpmovusqb_s f3 0f38 0 12 O -
vpmovusdw_s f3 0f38 0 13 H -
vpmovusqw_s f3 0f38 0 14 Q -
vpmovusqd_s f3 0f38 0 15 H -
vmovmskps np 0f 0 50 V v
vmovmskpd 66 0f 0 50 V v
vpmovmskb 66 0f 0 d7 V v
vpblendd 66 0f3a 0 02 V v
vblendps 66 0f3a 0 0c V v
vblendpd 66 0f3a 0 0d V v
vperm2f128 66 0f3a 0 06 V v
vhaddps f2 0f 0 7c V v
vhaddpd 66 0f 0 7c V v
vptest 66 0f38 0 17 V v
kmovb 66 0f 0 90 V v L0
kmovw np 0f 0 90 V v L0
kmovd 66 0f 1 90 V v1 L0
kmovq np 0f 1 90 V v1 L0
kmovb_s 66 0f 0 91 V v L0
kmovw_s np 0f 0 91 V v L0
kmovd_s 66 0f 1 91 V v1 L0
kmovq_s np 0f 1 91 V v1 L0
kmovb_r 66 0f 0 92 V v L0
kmovw_r np 0f 0 92 V v L0
kmovd_r f2 0f 0 92 V v L0
kmovq_r f2 0f 1 92 V v1 L0
kmovb_to_r 66 0f 0 93 V v L0
kmovw_to_r np 0f 0 93 V v L0
kmovd_to_r f2 0f 0 93 V v L0
kmovq_to_r f2 0f 1 93 V v1 L0
kandb 66 0f 0 41 V v L1
kandw np 0f 0 41 V v L1
kandd 66 0f 1 41 V v1 L1
kandq np 0f 1 41 V v1 L1
kandnb 66 0f 0 42 V v L1
kandnw np 0f 0 42 V v L1
kandnd 66 0f 1 42 V v1 L1
kandnq np 0f 1 42 V v1 L1
korb 66 0f 0 45 V v L1
korw np 0f 0 45 V v L1
kord 66 0f 1 45 V v1 L1
korq np 0f 1 45 V v1 L1
kxnorb 66 0f 0 46 V v L1
kxnorw np 0f 0 46 V v L1
kxnord 66 0f 1 46 V v1 L1
kxnorq np 0f 1 46 V v1 L1
kxorb 66 0f 0 47 V v L1
kxorw np 0f 0 47 V v L1
kxord 66 0f 1 47 V v1 L1
kxorq np 0f 1 47 V v1 L1
knotb 66 0f 0 44 V v L0
knotw np 0f 0 44 V v L0
knotd 66 0f 1 44 V v1 L0
knotq np 0f 1 44 V v1 L0
kaddb 66 0f 0 4a V v L1
kaddw np 0f 0 4a V v L1
kaddd 66 0f 1 4a V v1 L1
kaddq np 0f 1 4a V v1 L1
kunpckbw 66 0f 0 4b V v L1
kunpckwd np 0f 0 4b V v L1
kunpckdq np 0f 1 4b V v1 L1
kortestb 66 0f 0 98 V v L0
kortestw np 0f 0 98 V v L0
kortestd 66 0f 1 98 V v1 L0
kortestq np 0f 1 98 V v1 L0
ktestb 66 0f 0 99 V v L0
ktestw np 0f 0 99 V v L0
ktestd 66 0f 1 99 V v1 L0
ktestq np 0f 1 99 V v1 L0
kshiftlb 66 0f3a 0 32 V v L0
kshiftlw 66 0f3a 1 32 V v1 L0
kshiftld 66 0f3a 0 33 V v L0
kshiftlq 66 0f3a 1 33 V v1 L0
kshiftrb 66 0f3a 0 30 V v L0
kshiftrw 66 0f3a 1 30 V v1 L0
kshiftrd 66 0f3a 0 31 V v L0
kshiftrq 66 0f3a 1 31 V v1 L0
andn np 0f38 0 f2 V v L0
andnq np 0f38 1 f2 V v1 L0
bzhi np 0f38 0 f5 V v L0
bzhiq np 0f38 1 f5 V v1 L0
shlx 66 0f38 0 f7 V v L0
shlxq 66 0f38 1 f7 V v1 L0
shrx f2 0f38 0 f7 V v L0
shrxq f2 0f38 1 f7 V v1 L0
sarx f3 0f38 0 f7 V v L0
sarxq f3 0f38 1 f7 V v1 L0
rorx f2 0f3a 0 f0 V v L0
rorxq f2 0f3a 1 f0 V v1 L0
mulx f2 0f38 0 f6 V v L0
mulxq f2 0f38 1 f6 V v1 L0
pdep f2 0f38 0 f5 V v L0
pdepq f2 0f38 1 f5 V v1 L0
pext f3 0f38 0 f5 V v L0
pextq f3 0f38 1 f5 V v1 L0
"""

# name prefix opcode[/digit] flags
#   flags: b there is a one-byte form, opcode - 1; 8 the r/m register is a byte register;
#       i8 an immediate of one byte; is one of the operand's size, or a byte where it fits
#       (opcode + 2); iz one of the operand's size; 4 no REX.W is needed for 64 bits.
GENERAL = """
mov - 8b b
mov_s - 89 b
movi - c7/0 b iz
add - 03 b
or - 0b b
adc - 13 b
sbb - 1b b
and - 23 b
sub - 2b b
xor - 33 b
cmp - 3b b
add_s - 01 b
or_s - 09 b
and_s - 21 b
sub_s - 29 b
xor_s - 31 b
cmp_s - 39 b
test - 85 b
addi - 81/0 b is
ori - 81/1 b is
adci - 81/2 b is
sbbi - 81/3 b is
andi - 81/4 b is
subi - 81/5 b is
xori - 81/6 b is
cmpi - 81/7 b is
testi - f7/0 b iz
not - f7/2 b
neg - f7/3 b
mul - f7/4 b
imul1 - f7/5 b
div - f7/6 b
idiv - f7/7 b
inc - ff/0 b
dec - ff/1 b
roli - c1/0 b i8
rori - c1/1 b i8
shli - c1/4 b i8
shri - c1/5 b i8
sari - c1/7 b i8
rol_cl - d3/0 b
ror_cl - d3/1 b
shl_cl - d3/4 b
shr_cl - d3/5 b
sar_cl - d3/7 b
shldi - 0fa4 i8
shrdi - 0fac i8
imul - 0faf
imuli - 69 is
lea - 8d
movzx8 - 0fb6 8
movzx16 - 0fb7
movsx8 - 0fbe 8
movsx16 - 0fbf
movsxd - 63
xchg - 87 b
tzcnt f3 0fbc
lzcnt f3 0fbd
popcnt f3 0fb8
bsf - 0fbc
bsr - 0fbd
bt - 0fa3
bti - 0fba/4 i8
lock_cmpxchg_s f0 0fb1 b
lock_xadd_s f0 0fc1 b
lock_add_s f0 01 b
lock_or_s f0 09 b
lock_and_s f0 21 b
lock_sub_s f0 29 b
prefetchnta - 0f18/0 4
prefetcht0 - 0f18/1 4
prefetcht1 - 0f18/2 4
prefetcht2 - 0f18/3 4
prefetchw - 0f0d/1 4
call_r - ff/2 4
jmp_r - ff/4 4
cmovo - 0f40
cmovno - 0f41
cmovb - 0f42
cmovae - 0f43
cmove - 0f44
cmovne - 0f45
cmovbe - 0f46
cmova - 0f47
cmovs - 0f48
cmovns - 0f49
cmovp - 0f4a
cmovnp - 0f4b
cmovl - 0f4c
cmovge - 0f4d
cmovle - 0f4e
cmovg - 0f4f
seto - 0f90/0 8 4
setno - 0f91/0 8 4
setb - 0f92/0 8 4
setae - 0f93/0 8 4
sete - 0f94/0 8 4
setne - 0f95/0 8 4
setbe - 0f96/0 8 4
seta - 0f97/0 8 4
sets - 0f98/0 8 4
setns - 0f99/0 8 4
setp - 0f9a/0 8 4
setnp - 0f9b/0 8 4
setl - 0f9c/0 8 4
setge - 0f9d/0 8 4
setle - 0f9e/0 8 4
setg - 0f9f/0 8 4
"""

# What jumps, sets and conditional moves ask of the flags.
CONDITIONS = {
    "o": 0, "no": 1, "b": 2, "ae": 3, "e": 4, "ne": 5, "be": 6, "a": 7,
    "s": 8, "ns": 9, "p": 10, "np": 11, "l": 12, "ge": 13, "le": 14, "g": 15,
}
